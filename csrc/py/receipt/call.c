#include "py/receipt/call.h"

#include <stdint.h>
#include <string.h>

#include "base/min_max.h"
#include "py/base/errors.h"
#include "py/base/keyword.h"

static PyArrayObject *
array_of(PyObject *x)
{
    return x && PyArray_Check(x) ? (PyArrayObject *)x : NULL;
}

/* Elements of what the arrays broadcast to; of arrays that do not go together, anything. */
static size_t
broadcast_size(PyArrayObject *const arrays[3])
{
    npy_intp shape[NPY_MAXDIMS];
    int ndim = 0;
    for (int k = 0; k < 3; k++)
        if (arrays[k] && PyArray_NDIM(arrays[k]) > ndim)
            ndim = PyArray_NDIM(arrays[k]);
    for (int axis = 0; axis < ndim; axis++)
        shape[axis] = 1;
    for (int k = 0; k < 3; k++)
        for (int axis = 0; arrays[k] && axis < PyArray_NDIM(arrays[k]); axis++) {
            npy_intp *whole = &shape[ndim - PyArray_NDIM(arrays[k]) + axis];
            if (*whole == 1)
                *whole = PyArray_DIM(arrays[k], axis);
        }
    size_t size = 1;
    for (int axis = 0; axis < ndim; axis++)
        size *= (size_t)shape[axis];
    return size;
}

/* Bytes of an array of any library that says them, else 0. What its code raises besides a refusal stays set. */
static size_t
nbytes_of(PyObject *x)
{
    if (array_of(x))
        return (size_t)PyArray_NBYTES((PyArrayObject *)x);
    if (PyErr_Occurred())
        return 0;
    PyObject *number = PyObject_GetAttrString(x, "nbytes");
    const Py_ssize_t bytes = number && PyLong_Check(number) ? PyLong_AsSsize_t(number) : 0;
    Py_XDECREF(number);
    clear_refusal();
    return bytes > 0 ? (size_t)bytes : 0;
}

/* Bytes of the arrays of a list or tuple; 0 for anything else. */
static size_t
list_bytes(PyObject *list)
{
    size_t bytes = 0;
    const bool is_list = list && PyList_Check(list);
    if (!is_list && !(list && PyTuple_Check(list)))
        return 0;
    /* What tells its nbytes may shorten the list. */
    for (Py_ssize_t i = 0; i < (is_list ? PyList_Size(list) : PyTuple_Size(list)); i++) {
        PyObject *const x = Py_NewRef(is_list ? PyList_GetItem(list, i) : PyTuple_GetItem(list, i));
        bytes += nbytes_of(x);
        Py_DECREF(x);
    }
    return bytes;
}

static PyObject *
given(PyObject *x)
{
    if (x && PyTuple_Check(x) && PyTuple_Size(x) == 1)
        x = PyTuple_GetItem(x, 0);
    return x && !Py_IsNone(x) ? x : NULL;
}

bool
call_read(const struct module_state *state, struct call *call, enum via via, PyObject *const *values, Py_ssize_t count,
          PyObject *keywords)
{
    if (count < 2)
        return false;
    *call = (struct call){.via = via, .a = values[0], .b = values[1]};
    PyObject *out = count > 2 ? values[2] : NULL;
    const Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
    for (Py_ssize_t i = 0; i < named; i++) {
        const enum name name = keyword_name(state, PyTuple_GetItem(keywords, i));
        if (name == NAME_OUT)
            out = values[count + i];
        else if (name == NAME_DEVICE)
            call->device = given(values[count + i]);
        else
            call->others = true;
    }
    call->out = via != VIA_ADD_MANY ? given(out) : out && Py_IsNone(out) ? NULL : out;
    return true;
}

size_t
call_sum_bytes(const struct call *call)
{
    if (call->via == VIA_ADD_MANY)
        return larger(list_bytes(call->a), list_bytes(call->b));
    PyArrayObject *const arrays[] = {array_of(call->a), array_of(call->b), array_of(call->out)};
    size_t itemsize = 0;
    for (int k = 0; k < 3; k++)
        if (arrays[k])
            itemsize = larger(itemsize, (size_t)PyArray_ITEMSIZE(arrays[k]));
    if (itemsize)
        return itemsize * broadcast_size(arrays);
    return call->via == VIA_ADD ? larger(nbytes_of(call->a), nbytes_of(call->b)) : 0;
}

/* The leading bit's place and the three bits behind it. */
static size_t
size_class(size_t size)
{
    if (size < 16)
        return size;
    const int shift = 63 - __builtin_clzll(size) - 3;
    return (size_t)shift << 4 | size >> shift;
}

static struct key_operand
key_operand(PyObject *x)
{
    struct key_operand key = {0};
    PyArrayObject *array = array_of(x);
    if (x)
        key.type = Py_TYPE(x);
    if (array) {
        const size_t flags =
            (size_t)PyArray_FLAGS(array) & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS | NPY_ARRAY_ALIGNED);
        key.facts = (size_t)PyArray_TYPE(array) << 40 | size_class((size_t)PyArray_SIZE(array)) << 24 | flags << 8 |
                    (size_t)PyArray_NDIM(array) << 1 | (size_t)(PyArray_ISBYTESWAPPED(array) != 0);
    }
    return key;
}

struct extent {
    const char *begin, *end;
};

static struct extent
extent_of(PyArrayObject *x)
{
    struct extent extent = {PyArray_BYTES(x), PyArray_BYTES(x) + PyArray_ITEMSIZE(x)};
    for (int axis = 0; axis < PyArray_NDIM(x); axis++) {
        const npy_intp reach = (PyArray_DIM(x, axis) - 1) * PyArray_STRIDE(x, axis);
        *(reach < 0 ? &extent.begin : &extent.end) += reach;
    }
    return extent;
}

/* 0: they share no memory, 1: they are the same elements, 2: all else. */
static size_t
sharing(PyObject *one, PyObject *other)
{
    PyArrayObject *x = array_of(one), *y = array_of(other);
    if (!x || !y)
        return 0;
    const struct extent left = extent_of(x), right = extent_of(y);
    if (left.end <= right.begin || right.end <= left.begin)
        return 0;
    const size_t strides = (size_t)PyArray_NDIM(x) * sizeof(npy_intp);
    const bool same = PyArray_BYTES(x) == PyArray_BYTES(y) && PyArray_NDIM(x) == PyArray_NDIM(y) &&
                      memcmp(PyArray_DIMS(x), PyArray_DIMS(y), strides) == 0 &&
                      memcmp(PyArray_STRIDES(x), PyArray_STRIDES(y), strides) == 0;
    return same ? 1 : 2;
}

void
call_key(const struct call *call, struct record_key *key)
{
    PyObject *const objects[] = {call->a, call->b, call->out};
    const bool many = call->via == VIA_ADD_MANY;
    key->call = (size_t)call->via | (size_t)(call->out != NULL) << 2 | (size_t)(call->device != NULL) << 3 |
                (size_t)call->others << 4 | sharing(call->a, call->b) << 5 | sharing(call->a, call->out) << 7 |
                sharing(call->b, call->out) << 9 | (many ? size_class(call->bytes) << 11 : 0);
    for (int k = 0; k < 3; k++)
        key->operand[k] = many ? (struct key_operand){0} : key_operand(objects[k]);
}

long long
call_bytes(const struct call *call, PyObject *sum)
{
    if (call->via == VIA_ADD_MANY)
        return (long long)(list_bytes(call->a) + list_bytes(call->b) + list_bytes(sum));
    if (array_of(sum)) {
        PyArrayObject *a = array_of(call->a), *b = array_of(call->b);
        return PyArray_NBYTES((PyArrayObject *)sum) + (a ? PyArray_NBYTES(a) : 0) + (b ? PyArray_NBYTES(b) : 0);
    }
    return (long long)(nbytes_of(call->a) + nbytes_of(call->b) + nbytes_of(sum));
}

/* (dtype, shape, strides, address) of a NumPy array, the type of anything else, None for NULL. */
static PyObject *
operand_described(PyObject *x)
{
    PyArrayObject *array = array_of(x);
    if (!x)
        return Py_NewRef(Py_None);
    if (!array)
        return Py_NewRef((PyObject *)Py_TYPE(x));
    PyObject *shape = PyObject_GetAttrString(x, "shape"), *strides = PyObject_GetAttrString(x, "strides");
    PyObject *described = shape && strides ? Py_BuildValue("OOOK", (PyObject *)PyArray_DESCR(array), shape, strides,
                                                           (unsigned long long)(uintptr_t)PyArray_DATA(array))
                                           : NULL;
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    return described;
}

PyObject *
call_described(const struct call *call, PyObject *sum, PyObject *route)
{
    const bool many = call->via == VIA_ADD_MANY;
    PyObject *a = operand_described(call->a), *b = a ? operand_described(call->b) : NULL;
    PyObject *out = b ? operand_described(sum) : NULL;
    PyObject *device = !out ? NULL : call->device ? PyObject_Str(call->device) : Py_NewRef(Py_None);
    PyObject *described = device ? Py_BuildValue("{s:O,s:O,s:O,s:O,s:O,s:O,s:n,s:O}", "a", a, "b", b, "out", out, "new",
                                                 call->out ? Py_False : Py_True, "device", device, "others",
                                                 call->others ? Py_True : Py_False, "pairs",
                                                 many && PyList_Check(sum) ? PyList_Size(sum) : (Py_ssize_t)1, "route",
                                                 route ? route : Py_None)
                                 : NULL;
    Py_XDECREF(a);
    Py_XDECREF(b);
    Py_XDECREF(out);
    Py_XDECREF(device);
    return described;
}
