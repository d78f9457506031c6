/* The dtypes of NumPy, ml_dtypes and DLPack, and the dtype of a sum: by NumPy's rules, which numpy.add is asked for
 * once, or by those of the operands' library. */
#ifndef VECADD_PY_OPERANDS_DTYPES_H
#define VECADD_PY_OPERANDS_DTYPES_H

#include "base/layout.h"
#include "py/operands/operands.h"

/* One more than the dtype by NumPy's number, 0 for those that vecadd does not add. Includes C's other 64-bit integer
 * type. */
extern const unsigned char dtype_of_type_num[NPY_NTYPES_LEGACY];

/* dtype_of_descr for the numbers of other libraries' dtypes. */
int ml_dtype_of(struct module_state *state, int type_num);

/* The dtype of a NumPy dtype object, or -1 where vecadd does not add it, as with another byte order or metadata, and
 * with an exception set where ml_dtypes could not be read. Inline: every call begins with it. */
static inline int
dtype_of_descr(struct module_state *state, PyArray_Descr *descr)
{
    const int type_num = descr->type_num;
    if (!PyArray_ISNBO(descr->byteorder) || PyDataType_METADATA(descr))
        return -1;
    if (type_num >= 0 && type_num < NPY_NTYPES_LEGACY)
        return (int)dtype_of_type_num[type_num] - 1;
    return ml_dtype_of(state, type_num);
}

/* A new reference to the NumPy dtype object; NULL with an exception for a dtype of ml_dtypes that is not imported. */
PyArray_Descr *dtype_descr(struct module_state *state, enum dtype dtype);

/* Raises TypeError for an unsupported element type, with a list of the supported ones. An exception that dtype_of_descr
 * has set stays. Returns NULL. */
void *dtype_refuse(const char *what, PyObject *given);

struct dl_data_type dl_type_of_dtype(enum dtype dtype);

/* False for types that vecadd does not add, vectors of several components included. */
bool dtype_of_dl_type(struct dl_data_type type, enum dtype *dtype);

/* How a number on the host takes part in a device array's sum. Python's int, float and complex take the other operand's
 * kind of dtype, or the smallest dtype of their own kind; all other numbers keep their dtype. */
enum weakness { NOT_WEAK, WEAK_INT, WEAK_FLOAT, WEAK_COMPLEX };

struct scalar {
    enum weakness weak;
    enum dtype dtype; /* of `value` */
    unsigned char value[MAX_ITEMSIZE];
};

/* Whether `object` is a number of Python's or NumPy's. */
bool scalar_is(PyObject *object);

/* Whether `object` is a scalar of a dtype's very type, NumPy's or ml_dtypes'. A class that is derived from one may have
 * rules of its own for additions; where it is derived from another class first, NumPy does not take it for that dtype,
 * and its PyArray_FromScalar and PyArray_DescrFromScalar crash at it (2.4). False as well where an exception stays set:
 * NumPy asks a class for its dtype. */
bool scalar_is_of_dtype(PyObject *object);

/* Whether a number's type has an __array_ufunc__, by which NumPy asks it how to add, or which forbids to add. NumPy
 * does not look for one of its own scalars' and Python's numbers' very types. Returns 1, 0, or -1 with an exception
 * set. */
int scalar_has_rules(const struct module_state *state, PyObject *number);

/* Reads the number `object`; scalar_settle sets the value of a Python int. Returns 0, or -1 with an exception set (for
 * dtypes that vecadd does not add). */
int scalar_from(struct module_state *state, PyObject *object, enum role role, struct scalar *scalar);

/* Sets a Python int's value for a sum of dtype `sum`. Returns 0, or -1 with NumPy's OverflowError. */
int scalar_settle(PyObject *object, enum dtype sum, struct scalar *scalar);

/* Instead of scalar_settle, by the rules of PyTorch's kernels: an int wraps round an integer dtype; a number beside
 * floats of 16 bits becomes a float32, added as it is; one beside float32 is rounded once. Returns 0, or -1 with an
 * exception set. */
int scalar_as_torch(PyObject *object, enum dtype sum, struct scalar *scalar);

/* The dtype of a sum by NumPy's rules (NEP 50). Returns it, or -1 with an exception set. */
int promoted_dtype(struct module_state *state, enum dtype a, enum weakness a_weak, enum dtype b, enum weakness b_weak);

/* The sum's dtype object, as numpy.add says it for two dtypes, or Python's int, float or complex in a dtype's place: a
 * new reference, or NULL with an exception set. */
PyArray_Descr *numpys_sum_dtype(const struct module_state *state, PyObject *a, PyObject *b);

/* Refuses an `out` to whose dtype the sum's may not be cast by the rule "same_kind". Returns 0, or -1. */
int check_cast(struct module_state *state, enum dtype sum, enum dtype out);

#endif
