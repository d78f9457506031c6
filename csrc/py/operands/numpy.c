/* NumPy arrays as operands: which arrays vecadd's adders take, and their description. */
#include "base/overlap.h"
#include "base/plan.h"
#include "gpu/add.h"
#include "py/base/errors.h"
#include "py/operands/operand_from.h"

/* One more than the dtype by NumPy's number, 0 for those that vecadd does not add. Includes C's other 64-bit integer
 * type. */
#define OF_NUMPY(ID, name, typestr, VALUE, COMPONENT, NUMPY, DLPACK) [NUMPY] = DTYPE_##ID + 1,
static const unsigned char dtype_of_type_num[NPY_NTYPES_LEGACY] = {
    EACH_NUMPY_DTYPE(OF_NUMPY)[NPY_LONGLONG] = DTYPE_INT64 + 1,
    [NPY_ULONGLONG] = DTYPE_UINT64 + 1,
};
_Static_assert(NPY_INT64 == NPY_LONG && NPY_INT32 == NPY_INT, "each of C's integer types has a row");

#define TO_NUMPY(ID, name, typestr, VALUE, COMPONENT, NUMPY, DLPACK) [DTYPE_##ID] = (NUMPY),
static const int type_num_of_dtype[NUMPY_DTYPES] = {EACH_NUMPY_DTYPE(TO_NUMPY)};

enum { CONTIGUOUS = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS }; /* in either order */

const char *const role_name[ROLE_COUNT] = {[ROLE_A] = "a", [ROLE_B] = "b", [ROLE_OUT] = "out"};

/* ml_dtypes registers its types with NumPy when it is imported. Their numbers are unknown before and never change
 * after. vecadd does not import it: a program with such an array has done so. */
static void
find_ml_dtype(struct module_state *state, PyObject *ml_dtypes, enum dtype dtype)
{
    PyObject *scalar_type = PyObject_GetAttrString(ml_dtypes, dtype_table[dtype].name);
    PyArray_Descr *descr = NULL;
    if (scalar_type && PyArray_DescrConverter(scalar_type, &descr) && descr->type_num >= NPY_USERDEF)
        state->ml_type_num[dtype - NUMPY_DTYPES] = descr->type_num;
    clear_refusal();
    Py_XDECREF((PyObject *)descr);
    Py_XDECREF(scalar_type);
}

/* NumPy's number of a dtype of ml_dtypes; 0 where ml_dtypes is not imported or has no such type, and with an exception
 * set: it may be a module that is loaded when it is first used. */
static int
ml_type_num(struct module_state *state, enum dtype dtype)
{
    _Atomic int *known = &state->ml_type_num[dtype - NUMPY_DTYPES];
    if (*known)
        return *known;
    PyObject *name = PyUnicode_FromString("ml_dtypes");
    PyObject *ml_dtypes = name ? PyImport_GetModule(name) : NULL;
    if (ml_dtypes)
        find_ml_dtype(state, ml_dtypes, dtype);
    Py_XDECREF(ml_dtypes);
    Py_XDECREF(name);
    return *known;
}

/* Not inlined: inlining would make a look at NumPy's own dtypes save and restore more registers. */
static __attribute__((noinline)) int
ml_dtype_of(struct module_state *state, int type_num)
{
    for (int dtype = NUMPY_DTYPES; dtype < DTYPE_COUNT && type_num >= NPY_USERDEF && !PyErr_Occurred(); dtype++)
        if (type_num == ml_type_num(state, (enum dtype)dtype))
            return dtype;
    return -1;
}

int
dtype_of_descr(struct module_state *state, PyArray_Descr *descr)
{
    int type_num = descr->type_num;
    if (!PyArray_ISNBO(descr->byteorder) || PyDataType_METADATA(descr))
        return -1;
    if (type_num >= 0 && type_num < NPY_NTYPES_LEGACY)
        return (int)dtype_of_type_num[type_num] - 1;
    return ml_dtype_of(state, type_num);
}

PyArray_Descr *
dtype_descr(struct module_state *state, enum dtype dtype)
{
    if (!dtype_is_ml(dtype))
        return PyArray_DescrFromType(type_num_of_dtype[dtype]);
    const int type_num = ml_type_num(state, dtype);
    if (type_num)
        return PyArray_DescrFromType(type_num);
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_RuntimeError, "NumPy knows %s through ml_dtypes only: import ml_dtypes first",
                     dtype_table[dtype].name);
    return NULL;
}

void *
dtype_refuse(const char *what, PyObject *given)
{
    const char *const names = DTYPE_NAMES;
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%s has dtype %S; vecadd takes %s in native byte order", what, given, names + 2);
    return NULL;
}

bool
written_silently(PyArrayObject *array)
{
    const int flags = PyArray_FLAGS(array);
    return flags & NPY_ARRAY_WRITEABLE && flags >= 0; /* the sign is NPY_ARRAY_WARN_ON_WRITE, which no header has */
}

/* Why numpy.add has to handle `out`; NULL where it need not. */
static const char *
out_refusal(PyArrayObject *out, const struct batch_add *add)
{
    const size_t bytes = add->n * component_size[add->component];
    if (!written_silently(out))
        return "out is read-only, or writing to it warns";
    if (overlaps_in_part(add->a, add->c, bytes) || overlaps_in_part(add->b, add->c, bytes))
        return "out overlaps an input in part";
    return NULL;
}

bool
host_operand(struct module_state *state, PyArrayObject *array, struct operand *operand)
{
    int dtype = dtype_of_descr(state, PyArray_DESCR(array));
    int flags = PyArray_FLAGS(array);
    if (dtype < 0 || !(flags & NPY_ARRAY_ALIGNED) || !(flags & CONTIGUOUS))
        return false;
    *operand = (struct operand){.data = PyArray_DATA(array),
                                .size = (size_t)PyArray_SIZE(array),
                                .dtype = (enum dtype)dtype,
                                .place = PLACE_HOST,
                                .device = -1,
                                .writable = written_silently(array)};
    return true;
}

/* Not inlined, as ml_dtype_of. */
static __attribute__((noinline)) const char *
why_no_array(PyObject *object)
{
    return PyArray_IsAnyScalar(object)                     ? "an operand is a number"
           : PyArray_Check(object)                         ? "an operand is of a subclass of ndarray"
           : PyList_Check(object) || PyTuple_Check(object) ? "an operand is a list or a tuple"
                                                           : "an operand is no NumPy array";
}

const char *
host_run_from(struct module_state *state, PyObject *const objects[ROLE_COUNT], struct batch_add *add)
{
    int count = objects[ROLE_OUT] ? 3 : 2;
    for (int role = 0; role < count; role++)
        if (!PyArray_CheckExact(objects[role]))
            return why_no_array(objects[role]);

    PyArrayObject *first = (PyArrayObject *)objects[ROLE_A];
    int dtype = dtype_of_descr(state, PyArray_DESCR(first));
    if (dtype < 0)
        return "the dtype is none that vecadd adds";
    if (PyArray_NDIM(first) == 0)
        return "the operands have no dimension";

    int flags = PyArray_FLAGS(first);
    for (int role = 1; role < count; role++) {
        PyArrayObject *array = (PyArrayObject *)objects[role];
        if (PyArray_DESCR(array) != PyArray_DESCR(first) &&
            (PyArray_TYPE(array) != PyArray_TYPE(first) || dtype_of_descr(state, PyArray_DESCR(array)) != dtype))
            return "the dtypes differ";
        if (PyArray_NDIM(array) != PyArray_NDIM(first) ||
            !PyArray_CompareLists(PyArray_DIMS(array), PyArray_DIMS(first), PyArray_NDIM(first)))
            return "the shapes differ";
        flags &= PyArray_FLAGS(array);
    }
    if (!(flags & NPY_ARRAY_ALIGNED))
        return "an operand's elements are misaligned";
    if (!(flags & CONTIGUOUS))
        return "the operands are not all contiguous in one memory order";
    PyArrayObject *out = (PyArrayObject *)objects[ROLE_OUT];
    const struct dtype_row *row = &dtype_table[dtype];
    add->a = PyArray_DATA(first);
    add->b = PyArray_DATA((PyArrayObject *)objects[ROLE_B]);
    add->c = out ? PyArray_DATA(out) : NULL;
    add->n = (size_t)PyArray_SIZE(first) * row->components;
    add->component = row->component;
    return out ? out_refusal(out, add) : NULL;
}

bool
host_run_is(struct module_state *state, PyObject *const objects[ROLE_COUNT], const struct batch_add *add)
{
    struct batch_add now;
    return !host_run_from(state, objects, &now) && now.a == add->a && now.b == add->b && now.c == add->c &&
           now.n == add->n && now.component == add->component;
}
