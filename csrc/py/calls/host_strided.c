#include "py/calls/host_strided.h"

#include <math.h>
#include <stdlib.h>

#include "py/base/errors.h"
#include "py/base/floating_errors.h"
#include "py/calls/result.h"

/* Bytes of the sum from which our way pays. Below, numpy.add takes the same time on the one thread that we would use,
 * and it knows every case: on two cores of an EPYC 7B13 a float32 row on a matrix takes 0.4 of its time at 256 KiB, a
 * conversion to float64 0.9 to 1.1 there and 0.5 at 2 MiB, on two threads. */
enum { PAYS_FROM = 256 << 10, CONVERTED_PAYS_FROM = 1 << 20 };

/* One side as an array; `weak` is a Python number, whose dtype gives way to the other side's. */
struct side {
    PyArrayObject *array;
    PyObject *weak;
    enum dtype dtype;
};

/* Whether NumPy turns the Python number into this dtype without a change of kind and without a warning. */
static bool
number_fits(PyObject *number, enum dtype dtype)
{
    static const double largest[DTYPE_COUNT] = {[DTYPE_FLOAT16] = 65504.0,
                                                [DTYPE_FLOAT32] = 3.4028234663852886e38,
                                                [DTYPE_FLOAT64] = HUGE_VAL,
                                                [DTYPE_COMPLEX64] = 3.4028234663852886e38,
                                                [DTYPE_COMPLEX128] = HUGE_VAL};
    if (dtype == DTYPE_BOOL)
        return PyBool_Check(number);
    if (largest[dtype] == 0) /* an integer: PyArray_Pack refuses what is out of its range */
        return PyLong_Check(number) && dtype != DTYPE_BFLOAT16;
    if (PyComplex_Check(number))
        return dtype == DTYPE_COMPLEX128;
    const double value = PyFloat_AsDouble(number);
    if (value == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    return !isfinite(value) || fabs(value) <= largest[dtype];
}

/* A 0-d array of the number. NULL, without an exception, where NumPy refuses it. */
static PyArrayObject *
array_of_number(struct module_state *state, PyObject *number, enum dtype dtype)
{
    PyArray_Descr *descr = dtype_descr(state, dtype);
    PyArrayObject *array = descr ? (PyArrayObject *)PyArray_Empty(0, NULL, descr, 0) : NULL;
    if (array && PyArray_Pack(PyArray_DESCR(array), PyArray_DATA(array), number) < 0)
        Py_CLEAR(array);
    if (!array)
        PyErr_Clear();
    return array;
}

static bool
is_number(PyObject *object)
{
    return PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyBool_Check(object) ||
           PyComplex_CheckExact(object);
}

/* Fills in one side; false where it is nothing of ours. What is made of a scalar goes to *held. */
static bool
side_from(struct module_state *state, PyObject *object, struct side *side, PyObject **held)
{
    *side = (struct side){0};
    if (is_number(object)) {
        side->weak = object;
        return true;
    }
    if (PyArray_IsScalar(object, Generic)) {
        *held = PyArray_FromScalar(object, NULL);
        if (!*held)
            PyErr_Clear();
        object = *held;
    }
    if (!object || !PyArray_CheckExact(object))
        return false;
    side->array = (PyArrayObject *)object;
    const int dtype = dtype_of_descr(state, PyArray_DESCR(side->array));
    side->dtype = (enum dtype)dtype;
    return dtype >= 0;
}

/* Finds the sum's dtype, and makes an array of a side that is a number. */
static bool
promote(struct module_state *state, struct side side[2], struct host_rows_call *call)
{
    if (side[0].weak && side[1].weak)
        return false;
    for (int i = 0; i < 2; i++) {
        if (!side[i].weak)
            continue;
        side[i].dtype = side[1 - i].dtype;
        if (!number_fits(side[i].weak, side[i].dtype))
            return false;
        side[i].array = array_of_number(state, side[i].weak, side[i].dtype);
        call->scalars[i] = (PyObject *)side[i].array;
        if (!side[i].array)
            return false;
    }
    PyArray_Descr *of[] = {PyArray_DESCR(side[0].array), PyArray_DESCR(side[1].array)};
    const bool weak = side[0].weak || side[1].weak;
    call->descr =
        weak ? (PyArray_Descr *)Py_NewRef((PyObject *)of[side[0].weak != NULL]) : PyArray_PromoteTypes(of[0], of[1]);
    if (!call->descr) {
        PyErr_Clear();
        return false;
    }
    const int dtype = dtype_of_descr(state, call->descr);
    call->core.dtype = (enum dtype)dtype;
    return dtype >= 0;
}

static bool
broadcast(const struct side side[2], struct host_rows_call *call)
{
    const int ndim[] = {PyArray_NDIM(side[0].array), PyArray_NDIM(side[1].array)};
    call->ndim = ndim[0] > ndim[1] ? ndim[0] : ndim[1];
    if (call->ndim == 0 || call->ndim > LAYOUT_DIMENSIONS)
        return false;
    for (int i = 0; i < call->ndim; i++) {
        npy_intp extent = 1;
        for (int k = 0; k < 2; k++) {
            const int own = i - (call->ndim - ndim[k]);
            const npy_intp has = own < 0 ? 1 : PyArray_DIM(side[k].array, own);
            if (has != 1 && extent != 1 && has != extent)
                return false;
            if (has != 1)
                extent = has;
        }
        call->shape[i] = extent;
    }
    return true;
}

/* The strides of an array in the sum's dimensions, 0 where it is repeated. */
static void
strides_of(PyArrayObject *array, const struct host_rows_call *call, npy_intp strides[])
{
    const int missing = call->ndim - PyArray_NDIM(array);
    for (int i = 0; i < call->ndim; i++)
        strides[i] = i < missing || PyArray_DIM(array, i - missing) == 1 ? 0 : PyArray_STRIDE(array, i - missing);
}

/* Whether walking through the dimensions, last one fastest, never goes back. */
static bool
in_order(const struct host_rows_call *call, const npy_intp strides[])
{
    npy_intp before = 0;
    for (int i = call->ndim - 1; i >= 0; i--) {
        if (call->shape[i] == 1 || strides[i] == 0)
            continue;
        const npy_intp step = llabs(strides[i]); /* NumPy's sum of reversed arrays is not reversed */
        if (step < before)
            return false;
        before = step;
    }
    return true;
}

/* Whether each dimension is surely faster than the next one: NumPy leaves two that no operand walks through in C order,
 * and then the sum is in neither. */
static bool
surely_fortran(const struct host_rows_call *call, npy_intp strides[ROLE_COUNT][LAYOUT_DIMENSIONS])
{
    for (int i = 0; i + 1 < call->ndim; i++) {
        bool faster = false;
        for (int k = 0; k < 2; k++) {
            const npy_intp step = llabs(strides[k][i]), next = llabs(strides[k][i + 1]);
            if (step && next && step >= next)
                return false;
            faster = faster || (step && next);
        }
        if (!faster)
            return false;
    }
    return true;
}

/* The strides of a sum that is to be made, in the order that numpy.add would give it; false where that is neither C nor
 * Fortran order. */
static bool
new_strides(struct host_rows_call *call, npy_intp strides[ROLE_COUNT][LAYOUT_DIMENSIONS])
{
    call->fortran = !in_order(call, strides[ROLE_A]) || !in_order(call, strides[ROLE_B]);
    if (call->fortran && !surely_fortran(call, strides))
        return false;
    npy_intp next = (npy_intp)dtype_table[call->core.dtype].itemsize;
    for (int i = 0; i < call->ndim; i++) {
        const int at = call->fortran ? i : call->ndim - 1 - i;
        strides[ROLE_OUT][at] = next;
        next *= call->shape[at];
    }
    return true;
}

struct extent {
    uintptr_t begin, end;
};

static struct extent
extent_of(PyArrayObject *array)
{
    const uintptr_t data = (uintptr_t)PyArray_DATA(array);
    struct extent extent = {data, data + (uintptr_t)PyArray_ITEMSIZE(array)};
    for (int i = 0; i < PyArray_NDIM(array); i++) {
        const npy_intp reach = (PyArray_DIM(array, i) - 1) * PyArray_STRIDE(array, i);
        *(reach < 0 ? &extent.begin : &extent.end) += (uintptr_t)reach;
    }
    return extent;
}

/* Whether `out` is what we write: of the sum's dtype and shape, no element twice, and each input in the same place
 * element by element or nowhere near. */
static bool
out_suits(struct module_state *state, PyObject *object, const struct side side[2], const struct host_rows_call *call,
          npy_intp strides[ROLE_COUNT][LAYOUT_DIMENSIONS])
{
    PyArrayObject *out = (PyArrayObject *)object;
    if (!PyArray_CheckExact(object) || !written_silently(out) ||
        dtype_of_descr(state, PyArray_DESCR(out)) != (int)call->core.dtype || PyArray_NDIM(out) != call->ndim ||
        !PyArray_CompareLists(PyArray_DIMS(out), call->shape, call->ndim))
        return false;
    strides_of(out, call, strides[ROLE_OUT]);
    const struct extent to = extent_of(out);
    for (int k = 0; k < 2; k++) {
        const struct extent from = extent_of(side[k].array);
        if (from.end <= to.begin || to.end <= from.begin)
            continue;
        if (PyArray_DATA(side[k].array) != PyArray_DATA(out) || side[k].dtype != call->core.dtype)
            return false;
        for (int i = 0; i < call->ndim; i++)
            if (strides[k][i] != strides[ROLE_OUT][i])
                return false;
    }
    return true;
}

/* Whether an array and a scalar make a sum that is too small, told before anything is made of the scalar: for 64 KiB
 * that costs a tenth of the addition. Their common dtype has at most twice the larger one's bytes (int32 and float32),
 * and a Python number takes the array's. */
static bool
is_small(PyObject *object, PyObject *other)
{
    if (!PyArray_CheckExact(object) || PyArray_CheckExact(other))
        return false;
    PyArrayObject *array = (PyArrayObject *)object;
    npy_intp itemsize = PyArray_ITEMSIZE(array);
    if (PyArray_IsScalar(other, Generic)) {
        PyArray_Descr *descr = PyArray_DescrFromScalar(other);
        if (!descr) {
            PyErr_Clear();
            return false;
        }
        const npy_intp size = PyDataType_ELSIZE(descr);
        if (descr != PyArray_DESCR(array))
            itemsize = 2 * (size > itemsize ? size : itemsize);
        Py_DECREF((PyObject *)descr);
    }
    return itemsize > 0 && PyArray_SIZE(array) < PAYS_FROM / itemsize;
}

static int
describe(struct module_state *state, PyObject *const objects[ROLE_COUNT], struct host_rows_call *call)
{
    struct side side[2];
    if (is_small(objects[0], objects[1]) || is_small(objects[1], objects[0]))
        return 0;
    for (int k = 0; k < 2; k++)
        if (!side_from(state, objects[k], &side[k], &call->scalars[k]))
            return 0;
    if (!promote(state, side, call) || !broadcast(side, call))
        return 0;

    const size_t itemsize = dtype_table[call->core.dtype].itemsize;
    const bool converts = side[0].dtype != call->core.dtype || side[1].dtype != call->core.dtype;
    size_t size;
    if (!layout_count(call->ndim, call->shape, itemsize, &size)) /* NumPy has words of its own for it */
        return 0;
    if (size < (converts ? CONVERTED_PAYS_FROM : PAYS_FROM) / itemsize)
        return 0;
    npy_intp strides[ROLE_COUNT][LAYOUT_DIMENSIONS];
    for (int k = 0; k < 2; k++)
        strides_of(side[k].array, call, strides[k]);
    if (objects[ROLE_OUT] ? !out_suits(state, objects[ROLE_OUT], side, call, strides) : !new_strides(call, strides))
        return 0;

    call->a = PyArray_DATA(side[0].array);
    call->b = PyArray_DATA(side[1].array);
    for (int k = 0; k < 2; k++) {
        call->sides[k] = side[k].array;
        call->sizes[k] = PyArray_SIZE(side[k].array);
    }
    call->core.from[0] = side[0].dtype;
    call->core.from[1] = side[1].dtype;
    struct layout_view views[LAYOUT_OPERANDS];
    for (int k = 0; k < LAYOUT_OPERANDS; k++)
        views[k] = (struct layout_view){.ndim = call->ndim, .shape = call->shape, .strides = strides[k]};
    layout_make(&call->core.layout, call->ndim, call->shape, views);
    PyArrayObject *out = (PyArrayObject *)objects[ROLE_OUT];
    if (!host_rows_possible(&call->core, call->a, call->b, out ? PyArray_DATA(out) : NULL))
        return 0;
    struct status status;
    if (host_rows_plan(&call->core, &status) == 0)
        return 1;
    status_raise(state, &status);
    return -1;
}

int
host_rows_call_from(struct module_state *state, PyObject *const objects[ROLE_COUNT], struct host_rows_call *call)
{
    call->scalars[0] = call->scalars[1] = NULL;
    call->descr = NULL;
    const int found = describe(state, objects, call);
    if (found <= 0)
        host_rows_call_clear(call);
    return found;
}

void
host_rows_call_clear(struct host_rows_call *call)
{
    Py_CLEAR(call->scalars[0]);
    Py_CLEAR(call->scalars[1]);
    Py_CLEAR(call->descr);
}

/* As in add.c: a finalizer may have run where the sum was made. */
static bool
was_resized(const struct host_rows_call *call)
{
    const void *const before[] = {call->a, call->b};
    for (int k = 0; k < 2; k++)
        if (PyArray_DATA(call->sides[k]) != before[k] || PyArray_SIZE(call->sides[k]) != call->sizes[k])
            return true;
    return false;
}

PyObject *
host_rows_call_run(struct module_state *state, const struct host_rows_call *call, PyObject *out)
{
    PyObject *sum = out ? Py_NewRef(out) : host_result(state, call->descr, call->ndim, call->shape, call->fortran);
    if (sum && was_resized(call)) {
        PyErr_SetString(PyExc_ValueError, "an operand has been resized while the sum was made");
        Py_CLEAR(sum);
    }
    if (!sum)
        return NULL;
    void *c = PyArray_DATA((PyArrayObject *)sum);
    PyThreadState *released = PyEval_SaveThread();
    const unsigned flags = host_rows_add(&call->core, call->a, call->b, c);
    PyEval_RestoreThread(released);
    if (give_floating_errors(flags) < 0)
        Py_CLEAR(sum);
    return sum;
}
