/* NumPy arrays and numbers as operands: contiguous arrays of one dtype and shape, and pairs of any other layout. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/overlap.h"
#include "base/plan.h"
#include "gpu/add.h"
#include "py/base/python.h"
#include "py/operands/dtypes.h"
#include "py/operands/operands.h"

enum { CONTIGUOUS = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS }; /* in either order */

/* Whether writing the array is allowed and raises no warning, as NumPy raises for results of numpy.broadcast_arrays. */
static bool
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
                                                           : "an operand is not a NumPy array";
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
        return "unsupported dtype";
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

/* One side as an array; `weak` is a Python number, whose dtype gives way to the other side's. */
struct side {
    PyArrayObject *array;
    PyObject *weak;
    PyObject *made; /* an array made from a number; NULL: the object is an array */
    enum dtype dtype;
};

/* What follows gives up with an exception set where clear_refusal() leaves one. */

/* Whether NumPy turns the Python number into this dtype without a change of kind and without a warning. */
static bool
number_fits(struct module_state *state, PyObject *number, enum dtype dtype)
{
    struct scalar scalar;
    if (dtype_is_ml(dtype)) /* their conversions are ml_dtypes' own */
        return false;
    if (scalar_from(state, number, ROLE_A, &scalar) < 0 ||
        promoted_dtype(state, dtype, NOT_WEAK, scalar.dtype, scalar.weak) != (int)dtype) {
        clear_refusal();
        return false;
    }
    if (dtype_table[dtype].value != VALUE_FLOAT && dtype_table[dtype].value != VALUE_COMPLEX)
        return true; /* PyArray_Pack refuses integers out of range */
    if (PyComplex_Check(number))
        return dtype == DTYPE_COMPLEX128;
    const double value = PyFloat_AsDouble(number);
    if (value == -1 && PyErr_Occurred()) {
        clear_refusal();
        return false;
    }
    return !isfinite(value) || fabs(value) <= component_largest[dtype_table[dtype].component];
}

/* A 0-d array of the number; NULL where NumPy refuses it. */
static PyArrayObject *
array_of_number(struct module_state *state, PyObject *number, enum dtype dtype)
{
    PyArray_Descr *descr = dtype_descr(state, dtype);
    PyArrayObject *array = descr ? (PyArrayObject *)PyArray_Empty(0, NULL, descr, 0) : NULL;
    if (array && PyArray_Pack(PyArray_DESCR(array), PyArray_DATA(array), number) < 0)
        Py_CLEAR(array);
    clear_refusal();
    return array;
}

static bool
is_number(PyObject *object)
{
    return PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyBool_Check(object) ||
           PyComplex_CheckExact(object);
}

/* Fills in one side; false for objects that vecadd does not add. */
static bool
side_from(struct module_state *state, PyObject *object, struct side *side)
{
    *side = (struct side){0};
    if (is_number(object)) {
        side->weak = object;
        return true;
    }
    if (scalar_is_of_dtype(object)) {
        side->made = PyArray_FromScalar(object, NULL);
        clear_refusal();
        object = side->made;
    }
    if (!object || PyErr_Occurred() || !PyArray_CheckExact(object))
        return false;
    side->array = (PyArrayObject *)object;
    const int dtype = dtype_of_descr(state, PyArray_DESCR(side->array));
    side->dtype = (enum dtype)dtype;
    return dtype >= 0;
}

/* NumPy's own descr of the dtype: the later one where the sides have long and long long, which are one dtype here. */
static PyArray_Descr *
sum_descr(struct module_state *state, const struct side side[2], enum dtype dtype)
{
    PyArray_Descr *descr = NULL;
    for (int i = 0; i < 2; i++)
        if (!side[i].weak && side[i].dtype == dtype &&
            (!descr || PyArray_DESCR(side[i].array)->type_num > descr->type_num))
            descr = PyArray_DESCR(side[i].array);
    return descr ? (PyArray_Descr *)Py_NewRef((PyObject *)descr) : dtype_descr(state, dtype);
}

/* NumPy may be asked for a sum's dtype, by Python code: a finalizer that runs then may give an array another dtype. */
static bool
dtypes_stay(struct module_state *state, const struct side side[2])
{
    return dtype_of_descr(state, PyArray_DESCR(side[0].array)) == (int)side[0].dtype &&
           dtype_of_descr(state, PyArray_DESCR(side[1].array)) == (int)side[1].dtype;
}

/* Finds the sum's dtype, and turns a side that is a number into an array. */
static bool
promote(struct module_state *state, struct side side[2], struct host_sum *sum)
{
    if (side[0].weak && side[1].weak)
        return false;
    for (int i = 0; i < 2; i++) {
        if (!side[i].weak)
            continue;
        side[i].dtype = side[1 - i].dtype;
        if (!number_fits(state, side[i].weak, side[i].dtype))
            return false;
        side[i].array = array_of_number(state, side[i].weak, side[i].dtype);
        side[i].made = (PyObject *)side[i].array;
        if (!side[i].array)
            return false;
    }
    const int dtype = promoted_dtype(state, side[0].dtype, NOT_WEAK, side[1].dtype, NOT_WEAK);
    if (dtype < 0 || !dtypes_stay(state, side)) {
        clear_refusal();
        return false;
    }
    sum->dtype = (enum dtype)dtype;
    sum->descr = sum_descr(state, side, sum->dtype);
    return sum->descr;
}

/* Whether an array and a scalar make too small a sum, decided before the scalar becomes an array: for 64 KiB that costs
 * a tenth of the addition. Their common dtype has at most twice the larger one's bytes (int32 and float32), and a
 * Python number takes the array's dtype. */
static bool
is_small(PyObject *object, PyObject *other, npy_intp least)
{
    if (!PyArray_CheckExact(object) || PyArray_CheckExact(other))
        return false;
    PyArrayObject *array = (PyArrayObject *)object;
    npy_intp itemsize = PyArray_ITEMSIZE(array);
    if (scalar_is_of_dtype(other)) {
        OWNED PyArray_Descr *descr = PyArray_DescrFromScalar(other);
        if (!descr) {
            clear_refusal();
            return false;
        }
        const npy_intp size = PyDataType_ELSIZE(descr);
        if (descr != PyArray_DESCR(array))
            itemsize = 2 * (size > itemsize ? size : itemsize);
    }
    return itemsize > 0 && PyArray_SIZE(array) < least / itemsize;
}

/* Whether one of n float32, `stride` bytes apart, is a signalling NaN. */
static inline bool
has_signalling(const char *first, npy_intp n, npy_intp stride)
{
    bool any = false; /* without a branch, so that the compiler makes vectors of neighbours */
    for (npy_intp i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, first + i * stride, sizeof bits);
        any |= (bits & 0x7fc00000) == 0x7f800000 && (bits & 0x3fffff) != 0;
    }
    return any;
}

/* Whether numpy.add warns of this side's conversion "in cast". It may if it converts the whole input before it adds,
 * that is, an input of up to NPY_BUFSIZE elements and at most one dimension. The warning comes from signalling NaNs,
 * and only in the conversion from float32 to float64. */
static bool
warns_of_cast(const struct side *side, enum dtype sum)
{
    const struct dtype_row *row = &dtype_table[side->dtype];
    if (row->component != COMPONENT_F32 || dtype_table[sum].component != COMPONENT_F64 ||
        PyArray_NDIM(side->array) > 1 || PyArray_SIZE(side->array) > NPY_BUFSIZE)
        return false;
    const npy_intp n = PyArray_SIZE(side->array), between = sizeof(float);
    const npy_intp stride = PyArray_NDIM(side->array) ? PyArray_STRIDE(side->array, 0) : 0;
    const char *first = PyArray_DATA(side->array);
    if (stride == (npy_intp)row->itemsize)
        return has_signalling(first, n * row->components, between);
    return has_signalling(first, n, stride) || (row->components > 1 && has_signalling(first + between, n, stride));
}

/* Whether the sum may have `least` bytes: it has the larger side's elements, or those of both multiplied where the
 * shapes broadcast each other. */
static bool
may_reach(npy_intp least, const struct side side[2], enum dtype sum)
{
    const npy_intp a = PyArray_SIZE(side[0].array), b = PyArray_SIZE(side[1].array), larger_one = a > b ? a : b;
    const npy_intp elements = least / dtype_table[sum].itemsize;
    const bool flat = PyArray_NDIM(side[0].array) < 2 && PyArray_NDIM(side[1].array) < 2;
    return larger_one >= elements || (!flat && a > 0 && b >= elements / a);
}

/* Describes the array. Takes `made`, the reference to a newly made array, or a new one to the caller's array. */
static void
operand_of_array(PyArrayObject *array, enum dtype dtype, PyObject *made, struct owned_operand *result)
{
    const bool plain = PyArray_CHKFLAGS(array, NPY_ARRAY_C_CONTIGUOUS) && PyArray_CHKFLAGS(array, NPY_ARRAY_ALIGNED);
    result->operand = (struct operand){.data = PyArray_DATA(array),
                                       .size = (size_t)PyArray_SIZE(array),
                                       .ndim = PyArray_NDIM(array),
                                       .shape = PyArray_DIMS(array),
                                       .strides = plain ? NULL : PyArray_STRIDES(array),
                                       .dtype = dtype,
                                       .place = PLACE_HOST,
                                       .device = -1,
                                       .writable = written_silently(array)};
    result->exported = made ? made : Py_NewRef((PyObject *)array);
    result->library = NULL;
    result->needs_keepalive = false;
}

const char *
host_pair_from(struct module_state *state, PyObject *const objects[ROLE_COUNT], npy_intp least,
               struct owned_operand operands[ROLE_COUNT], struct host_sum *sum)
{
    struct side side[2] = {{0}, {0}};
    sum->descr = NULL;
    if (is_small(objects[ROLE_A], objects[ROLE_B], least) || is_small(objects[ROLE_B], objects[ROLE_A], least))
        return "numpy.add is as fast for so few elements";
    const char *why = "vecadd adds plain arrays of its own dtypes, and numbers";
    if (side_from(state, objects[ROLE_A], &side[0]) && side_from(state, objects[ROLE_B], &side[1])) {
        why = "vecadd makes no sum of these dtypes, or of such a number and this dtype";
        const bool promoted = promote(state, side, sum);
        const bool warns = promoted && may_reach(least, side, sum->dtype) &&
                           (warns_of_cast(&side[0], sum->dtype) || warns_of_cast(&side[1], sum->dtype));
        if (warns)
            why = "numpy.add warns of the signalling NaN that it converts first";
        else if (promoted) {
            for (int k = 0; k < 2; k++)
                operand_of_array(side[k].array, side[k].dtype, side[k].made, &operands[k]);
            return NULL;
        }
    }
    Py_XDECREF(side[0].made);
    Py_XDECREF(side[1].made);
    Py_CLEAR(sum->descr);
    return why;
}

/* Refuses objects that may say themselves how they are added. */
static int
refuse_rules(const struct module_state *state, PyObject *object, enum role role)
{
    const int has =
        PyArray_CheckExact(object) ? 0 : has_attribute((PyObject *)Py_TYPE(object), state->names[NAME_ARRAY_UFUNC]);
    OWNED PyObject *type = has > 0 ? PyType_GetName(Py_TYPE(object)) : NULL;
    if (type)
        PyErr_Format(PyExc_TypeError,
                     "%s is a %U, which has rules of its own for additions; the GPU adds NumPy arrays only: pass "
                     "numpy.asarray(%s)",
                     role_name[role], type, role_name[role]);
    return has ? -1 : 0;
}

static PyObject *
array_or_number(PyObject *object)
{
    return is_number(object) ? Py_NewRef(object) : PyArray_FromAny(object, NULL, 0, 0, NPY_ARRAY_ENSUREARRAY, NULL);
}

static PyObject *
dtype_or_type(PyObject *x)
{
    return PyArray_Check(x)  ? Py_NewRef((PyObject *)PyArray_DESCR((PyArrayObject *)x))
           : PyBool_Check(x) ? (PyObject *)PyArray_DescrFromType(NPY_BOOL)
                             : Py_NewRef((PyObject *)Py_TYPE(x));
}

/* The dtype that numpy.add gives the sum. That of Python's numbers alone depends on their values. */
static PyArray_Descr *
any_sum_dtype(const struct module_state *state, PyObject *a, PyObject *b)
{
    if (is_number(a) && is_number(b)) {
        OWNED PyObject *sum = PyObject_CallFunctionObjArgs(state->numpy_add, a, b, NULL);
        OWNED PyObject *array = sum ? PyArray_FromAny(sum, NULL, 0, 0, 0, NULL) : NULL;
        return array ? (PyArray_Descr *)Py_NewRef((PyObject *)PyArray_DESCR((PyArrayObject *)array)) : NULL;
    }
    OWNED PyObject *kind_of_a = dtype_or_type(a), *kind_of_b = dtype_or_type(b);
    return numpys_sum_dtype(state, kind_of_a, kind_of_b);
}

/* The dtype of its scalars' type: of native byte order, without metadata. Takes the reference. */
static PyArray_Descr *
plain_dtype(PyArray_Descr *dtype)
{
    OWNED PyArray_Descr *given = dtype;
    PyArray_Descr *plain = NULL;
    if (given)
        PyArray_DescrConverter((PyObject *)given->typeobj, &plain);
    return plain;
}

int
host_any_pair_from(struct module_state *state, PyObject *const objects[ROLE_COUNT],
                   struct owned_operand operands[ROLE_COUNT], struct host_sum *sum)
{
    const char *const names = DTYPE_NAMES;
    if (refuse_rules(state, objects[ROLE_A], ROLE_A) < 0 || refuse_rules(state, objects[ROLE_B], ROLE_B) < 0)
        return -1;
    PyObject *a = array_or_number(objects[ROLE_A]), *b = a ? array_or_number(objects[ROLE_B]) : NULL;
    PyObject *const both[] = {a, b};
    sum->descr = b ? plain_dtype(any_sum_dtype(state, a, b)) : NULL;
    const int dtype = sum->descr ? dtype_of_descr(state, sum->descr) : -1;
    sum->dtype = (enum dtype)dtype;
    for (int k = 0; k < 2 && dtype >= 0; k++) {
        if (PyArray_Check(both[k]))
            operand_of_array((PyArrayObject *)both[k], sum->dtype, both[k], &operands[k]);
        else
            operands[k] = (struct owned_operand){.operand = {.size = 1, .dtype = sum->dtype}, .exported = both[k]};
    }
    if (dtype >= 0)
        return 0;
    if (sum->descr && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "the sum has dtype %S; on the GPU vecadd adds %s", (PyObject *)sum->descr,
                     names + 2);
    Py_XDECREF(a);
    Py_XDECREF(b);
    Py_CLEAR(sum->descr);
    return -1;
}

bool
host_out_from(struct module_state *state, PyObject *object, struct owned_operand *operand)
{
    if (!PyArray_CheckExact(object))
        return false;
    PyArrayObject *array = (PyArrayObject *)object;
    const int dtype = dtype_of_descr(state, PyArray_DESCR(array));
    if (dtype < 0)
        return false;
    operand_of_array(array, (enum dtype)dtype, NULL, operand);
    return true;
}
