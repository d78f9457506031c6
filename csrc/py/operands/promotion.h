/* The dtype of a sum: by NumPy's rules, asked of numpy.add itself and remembered, or by those of the operands'
 * library. */
#ifndef VECADD_PY_OPERANDS_PROMOTION_H
#define VECADD_PY_OPERANDS_PROMOTION_H

#include "base/layout.h"
#include "py/operands/operand_from.h"

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
 * rules of its own for additions; derived from another class first, it is none of that dtype to NumPy, whose
 * PyArray_FromScalar and PyArray_DescrFromScalar crash at it (2.4). False as well where an exception stays set: NumPy
 * asks a class for its dtype. */
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

/* Refuses an `out` to whose dtype the sum's may not be cast by the rule "same_kind". Returns 0, or -1. */
int check_cast(struct module_state *state, enum dtype sum, enum dtype out);

#endif
