#include "py/operands/dtypes.h"

#include <stdint.h>
#include <string.h>

#include "base/addition.h"
#include "py/base/python.h"
#include "py/operands/dlpack.h"

#define OF_NUMPY(ID, name, typestr, VALUE, COMPONENT, NUMPY, DLPACK) [NUMPY] = DTYPE_##ID + 1,
const unsigned char dtype_of_type_num[NPY_NTYPES_LEGACY] = {
    EACH_NUMPY_DTYPE(OF_NUMPY)[NPY_LONGLONG] = DTYPE_INT64 + 1,
    [NPY_ULONGLONG] = DTYPE_UINT64 + 1,
};
_Static_assert(NPY_INT64 == NPY_LONG && NPY_INT32 == NPY_INT, "each of C's integer types has a row");

#define TO_NUMPY(ID, name, typestr, VALUE, COMPONENT, NUMPY, DLPACK) [DTYPE_##ID] = (NUMPY),
static const int type_num_of_dtype[NUMPY_DTYPES] = {EACH_NUMPY_DTYPE(TO_NUMPY)};

const char *const role_name[ROLE_COUNT] = {[ROLE_A] = "a", [ROLE_B] = "b", [ROLE_OUT] = "out"};

/* ml_dtypes registers its types with NumPy when it is imported. Their numbers are unknown before and never change
 * after. vecadd does not import it: a program with such an array has done so. */
static void
find_ml_dtype(struct module_state *state, PyObject *ml_dtypes, enum dtype dtype)
{
    OWNED PyObject *scalar_type = PyObject_GetAttrString(ml_dtypes, dtype_table[dtype].name);
    OWNED PyArray_Descr *descr = NULL;
    if (scalar_type && PyArray_DescrConverter(scalar_type, &descr) && descr->type_num >= NPY_USERDEF)
        state->ml_type_num[dtype - NUMPY_DTYPES] = descr->type_num;
    clear_refusal();
}

/* NumPy's number of a dtype of ml_dtypes; 0 where ml_dtypes is not imported or has no such type, and with an exception
 * set: it may be a module that is loaded when it is first used. */
static int
ml_type_num(struct module_state *state, enum dtype dtype)
{
    _Atomic int *known = &state->ml_type_num[dtype - NUMPY_DTYPES];
    if (*known)
        return *known;
    OWNED PyObject *name = PyUnicode_FromString("ml_dtypes");
    OWNED PyObject *ml_dtypes = name ? PyImport_GetModule(name) : NULL;
    if (ml_dtypes)
        find_ml_dtype(state, ml_dtypes, dtype);
    return *known;
}

int
ml_dtype_of(struct module_state *state, int type_num)
{
    for (int dtype = NUMPY_DTYPES; dtype < DTYPE_COUNT && type_num >= NPY_USERDEF && !PyErr_Occurred(); dtype++)
        if (type_num == ml_type_num(state, (enum dtype)dtype))
            return dtype;
    return -1;
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
    OWNED PyArray_Descr *descr = PyArray_DescrFromTypeObject((PyObject *)Py_TYPE(object));
    const bool found = descr && (PyObject *)descr->typeobj == (PyObject *)Py_TYPE(object);
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
    OWNED PyArrayObject *array = (PyArrayObject *)made;
    int dtype = dtype_of_descr(state, PyArray_DESCR(array));
    if (dtype < 0)
        dtype_refuse(role_name[role], (PyObject *)PyArray_DESCR(array));
    else {
        scalar->dtype = (enum dtype)dtype;
        memcpy(scalar->value, PyArray_DATA(array), dtype_table[dtype].itemsize);
    }
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
        if (!int_fits(object, row, &bits))
            return refuse(PyExc_OverflowError, "Python integer %R out of bounds for %s", object, row->name);
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
        OWNED PyObject *integer = PyNumber_Index(object);
        if (!integer)
            return -1;
        value = row->component == COMPONENT_F64 ? PyLong_AsDouble(integer) : float_of_int(integer);
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
PyArray_Descr *
numpys_sum_dtype(const struct module_state *state, PyObject *a, PyObject *b)
{
    OWNED PyObject *resolved = PyObject_CallMethod(state->numpy_add, "resolve_dtypes", "((OOO))", a, b, Py_None);
    PyObject *sum = resolved ? Py_XNewRef(PyTuple_GetItem(resolved, 2)) : NULL;
    if (sum && !PyArray_DescrCheck(sum)) {
        PyErr_SetString(PyExc_TypeError, "numpy.add gives no dtype for the sum");
        Py_CLEAR(sum);
    }
    return (PyArray_Descr *)sum;
}

static int
ask_numpy(struct module_state *state, enum dtype a, enum weakness a_weak, enum dtype b, enum weakness b_weak)
{
    OWNED PyObject *first = resolvable(state, a, a_weak);
    OWNED PyObject *second = first ? resolvable(state, b, b_weak) : NULL;
    OWNED PyArray_Descr *sum = second ? numpys_sum_dtype(state, first, second) : NULL;
    const int result = sum ? dtype_of_descr(state, sum) : -1;
    if (sum && result < 0)
        dtype_refuse("the sum", (PyObject *)sum);
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
    OWNED PyArray_Descr *from = dtype_descr(state, sum), *to = from ? dtype_descr(state, out) : NULL;
    const bool allowed = to && PyArray_CanCastTypeTo(from, to, NPY_SAME_KIND_CASTING);
    if (!allowed && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError,
                     "Cannot cast ufunc 'add' output from dtype('%s') to dtype('%s') with casting rule 'same_kind'",
                     dtype_table[sum].name, dtype_table[out].name);
    return allowed ? 0 : -1;
}

#define CODE_ROW(ID, name, typestr, VALUE, COMPONENT, NUMPY, DLPACK) [DTYPE_##ID] = (DLPACK),
static const uint8_t type_code[DTYPE_COUNT] = {EACH_DTYPE(CODE_ROW)};

struct dl_data_type
dl_type_of_dtype(enum dtype dtype)
{
    const struct dtype_row *row = &dtype_table[dtype];
    return (struct dl_data_type){type_code[dtype], (uint8_t)(8 * row->itemsize), 1};
}

bool
dtype_of_dl_type(struct dl_data_type type, enum dtype *dtype)
{
    for (int candidate = 0; candidate < DTYPE_COUNT; candidate++) {
        const struct dtype_row *row = &dtype_table[candidate];
        if (type.bits != 8 * row->itemsize || type.components != 1 || type.code != type_code[candidate])
            continue;
        *dtype = (enum dtype)candidate;
        return true;
    }
    return false;
}
