#include "py/operands/promotion.h"

#include <stdint.h>
#include <string.h>

#include "base/addition.h"
#include "py/base/attribute.h"
#include "py/base/errors.h"

/* Rows and columns of the table: the dtypes, and Python's three weak kinds. */
static int
index_of(enum dtype dtype, enum weakness weak)
{
    return weak == NOT_WEAK ? (int)dtype : DTYPE_COUNT + (int)weak - 1;
}

bool
scalar_is(PyObject *object)
{
    return PyArray_IsScalar(object, Generic) || PyBool_Check(object) || PyLong_Check(object) || PyFloat_Check(object) ||
           PyComplex_Check(object);
}

bool
scalar_is_of_dtype(PyObject *object)
{
    if (!PyArray_IsScalar(object, Generic))
        return false;
    if (PyArray_CheckAnyScalarExact(object))
        return true;
    PyArray_Descr *descr = PyArray_DescrFromTypeObject((PyObject *)Py_TYPE(object));
    const bool found = descr && (PyObject *)descr->typeobj == (PyObject *)Py_TYPE(object);
    Py_XDECREF((PyObject *)descr);
    clear_refusal();
    return found;
}

int
scalar_has_rules(const struct module_state *state, PyObject *number)
{
    return PyArray_CheckAnyScalarExact(number)
               ? 0
               : has_attribute((PyObject *)Py_TYPE(number), state->names[NAME_ARRAY_UFUNC]);
}

static int
numpy_scalar_from(struct module_state *state, PyObject *object, enum role role, struct scalar *scalar)
{
    PyObject *made = scalar_is_of_dtype(object) ? PyArray_FromScalar(object, NULL)
                     : PyErr_Occurred()         ? NULL
                                                : PyArray_FromAny(object, NULL, 0, 0, 0, NULL);
    if (!made)
        return -1;
    PyArrayObject *array = (PyArrayObject *)made;
    int dtype = dtype_of_descr(state, PyArray_DESCR(array));
    if (dtype < 0)
        dtype_refuse(role_name[role], (PyObject *)PyArray_DESCR(array));
    else {
        scalar->dtype = (enum dtype)dtype;
        memcpy(scalar->value, PyArray_DATA(array), dtype_table[dtype].itemsize);
    }
    Py_DECREF(array);
    return dtype < 0 ? -1 : 0;
}

/* Python's own types are checked last: numpy.float64 is a float as well. */
int
scalar_from(struct module_state *state, PyObject *object, enum role role, struct scalar *scalar)
{
    *scalar = (struct scalar){.weak = NOT_WEAK};
    if (PyArray_IsScalar(object, Generic))
        return numpy_scalar_from(state, object, role, scalar);
    if (PyBool_Check(object)) {
        scalar->dtype = DTYPE_BOOL;
        scalar->value[0] = Py_IsTrue(object);
    } else if (PyLong_Check(object))
        scalar->weak = WEAK_INT;
    else if (PyFloat_Check(object)) {
        double value = PyFloat_AsDouble(object);
        scalar->weak = WEAK_FLOAT;
        scalar->dtype = DTYPE_FLOAT64;
        memcpy(scalar->value, &value, sizeof value);
    } else {
        double parts[] = {PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)};
        scalar->weak = WEAK_COMPLEX;
        scalar->dtype = DTYPE_COMPLEX128;
        memcpy(scalar->value, parts, sizeof parts);
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* Whether the int fits an integer dtype; *bits are its 64 bits. */
static bool
int_fits(PyObject *object, const struct dtype_row *row, uint64_t *bits)
{
    const int shift = 64 - 8 * (int)row->itemsize;
    if (row->value == VALUE_UNSIGNED) {
        *bits = PyLong_AsUnsignedLongLong(object);
        bool fits = !PyErr_Occurred() && *bits <= UINT64_MAX >> shift;
        PyErr_Clear(); /* OverflowError: nothing else is raised for an int */
        return fits;
    }
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    *bits = (uint64_t)value;
    return !overflow && value <= INT64_MAX >> shift && value >= INT64_MIN >> shift;
}

int
scalar_settle(PyObject *object, enum dtype sum, struct scalar *scalar)
{
    const struct dtype_row *row = &dtype_table[sum];
    if (scalar->weak != WEAK_INT)
        return 0;
    if (value_is_integer(row->value)) {
        uint64_t bits;
        if (!int_fits(object, row, &bits)) {
            PyErr_Format(PyExc_OverflowError, "Python integer %R out of bounds for %s", object, row->name);
            return -1;
        }
        scalar->dtype = sum; /* its bytes come first */
        memcpy(scalar->value, &bits, sizeof bits);
        return 0;
    }
    double value = PyLong_AsDouble(object);
    if (value == -1.0 && PyErr_Occurred())
        return -1;
    scalar->dtype = DTYPE_FLOAT64;
    memcpy(scalar->value, &value, sizeof value);
    return 0;
}

/* The float32 nearest to an int of 64 bits, signed or unsigned. */
static double
float_of_int(PyObject *integer)
{
    int overflow;
    const long long value = PyLong_AsLongLongAndOverflow(integer, &overflow);
    return overflow > 0 ? (float)PyLong_AsUnsignedLongLong(integer) : (float)value;
}

int
scalar_as_torch(PyObject *object, enum dtype sum, struct scalar *scalar)
{
    const struct dtype_row *row = &dtype_table[sum];
    if (!value_is_float(row->value)) {
        if (scalar->weak != WEAK_INT)
            return 0;
        const unsigned long long bits = PyLong_AsUnsignedLongLongMask(object);
        scalar->dtype = sum; /* its bytes come first */
        memcpy(scalar->value, &bits, sizeof bits);
        return PyErr_Occurred() ? -1 : 0;
    }
    if (row->value == VALUE_COMPLEX && (PyComplex_Check(object) || PyArray_IsScalar(object, ComplexFloating)))
        return 0;
    double value;
    if (PyIndex_Check(object) && !PyArray_IsScalar(object, Bool)) {
        PyObject *integer = PyNumber_Index(object);
        if (!integer)
            return -1;
        value = row->component == COMPONENT_F64 ? PyLong_AsDouble(integer) : float_of_int(integer);
        Py_DECREF(integer);
    } else
        value = PyFloat_AsDouble(object);
    if (PyErr_Occurred())
        return -1;
    scalar->dtype = DTYPE_FLOAT64;
    memcpy(scalar->value, &value, sizeof value);
    if (row->component == COMPONENT_F16 || row->component == COMPONENT_BF16) {
        scalar->dtype = DTYPE_FLOAT32;
        scalar_convert(scalar->value, DTYPE_FLOAT64, DTYPE_FLOAT32);
    }
    return 0;
}

/* An argument of numpy.add.resolve_dtypes: a dtype, or the Python type of a weak number. A new reference. */
static PyObject *
resolvable(struct module_state *state, enum dtype dtype, enum weakness weak)
{
    switch (weak) {
    case WEAK_INT:
        return Py_NewRef((PyObject *)&PyLong_Type);
    case WEAK_FLOAT:
        return Py_NewRef((PyObject *)&PyFloat_Type);
    case WEAK_COMPLEX:
        return Py_NewRef((PyObject *)&PyComplex_Type);
    default:
        return (PyObject *)dtype_descr(state, dtype);
    }
}

/* Asks numpy.add itself, since numpy.result_type knows no common dtype of bfloat16 and int16. */
static int
ask_numpy(struct module_state *state, enum dtype a, enum weakness a_weak, enum dtype b, enum weakness b_weak)
{
    int result = -1;
    PyObject *first = resolvable(state, a, a_weak), *second = first ? resolvable(state, b, b_weak) : NULL;
    PyObject *resolved =
        second ? PyObject_CallMethod(state->numpy_add, "resolve_dtypes", "((OOO))", first, second, Py_None) : NULL;
    if (resolved) {
        PyObject *sum = PyTuple_GetItem(resolved, 2);
        if (sum && PyArray_DescrCheck(sum)) {
            result = dtype_of_descr(state, (PyArray_Descr *)sum);
            if (result < 0)
                dtype_refuse("the sum", sum);
        } else if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "numpy.add gives no dtype for the sum");
    }
    Py_XDECREF(first);
    Py_XDECREF(second);
    Py_XDECREF(resolved);
    return result;
}

int
promoted_dtype(struct module_state *state, enum dtype a, enum weakness a_weak, enum dtype b, enum weakness b_weak)
{
    if (a == b && a_weak == NOT_WEAK && b_weak == NOT_WEAK)
        return (int)a;
    _Atomic signed char *known = &state->promoted[index_of(a, a_weak)][index_of(b, b_weak)];
    if (!*known) {
        int found = ask_numpy(state, a, a_weak, b, b_weak);
        if (found < 0)
            return -1;
        *known = (signed char)(found + 1);
    }
    return *known - 1;
}

int
check_cast(struct module_state *state, enum dtype sum, enum dtype out)
{
    if (sum == out)
        return 0;
    PyArray_Descr *from = dtype_descr(state, sum), *to = from ? dtype_descr(state, out) : NULL;
    bool allowed = to && PyArray_CanCastTypeTo(from, to, NPY_SAME_KIND_CASTING);
    Py_XDECREF((PyObject *)from);
    Py_XDECREF((PyObject *)to);
    if (!allowed && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError,
                     "Cannot cast ufunc 'add' output from dtype('%s') to dtype('%s') with casting rule 'same_kind'",
                     dtype_table[sum].name, dtype_table[out].name);
    return allowed ? 0 : -1;
}
