#include "py/calls/result.h"

#include <string.h>

#include "gpu/stream.h"
#include "host/output_pool.h"
#include "py/operands/device_array.h"
#include "py/operands/library.h"

PyObject *
array_handler_set(PyObject *handler)
{
    const int collected = PyGC_Disable();
    PyObject *before = PyDataMem_SetHandler(handler);
    if (collected)
        PyGC_Enable();
    return before;
}

/* Takes the reference to `dtype`, as PyArray_Empty does. */
static PyObject *
pooled_result(const struct module_state *state, PyArray_Descr *dtype, int ndim, const npy_intp shape[], bool fortran)
{
    OWNED PyObject *before = array_handler_set(state->output_handler);
    if (!before) {
        Py_DECREF((PyObject *)dtype);
        return NULL;
    }
    PyObject *result = PyArray_Empty(ndim, shape, dtype, fortran);
    OWNED PyObject *ours = array_handler_set(before);
    if (!ours)
        Py_CLEAR(result);
    return result;
}

/* Not inline: a small sum would pay for it with a stack frame, 20 instructions of its call's 2840. */
static PyObject *__attribute__((noinline)) medium_result(struct module_state *state, PyArray_Descr *dtype, int ndim,
                                                         const npy_intp shape[], bool fortran, size_t bytes)
{
    struct kept_sums *sums = &state->kept_sums;
    size_t used = 0;
    const bool pooled = sums->pooled && output_pool_cuts(&used);
    PyObject *sum =
        pooled ? pooled_result(state, dtype, ndim, shape, fortran) : PyArray_Empty(ndim, shape, dtype, fortran);
    if (sum && pooled)
        kept_sums_note_pool(sums, PyArray_DATA((PyArrayObject *)sum), bytes, used);
    else if (sum)
        kept_sums_note_heap(sums, PyArray_DATA((PyArrayObject *)sum), bytes);
    return sum;
}

PyObject *
host_result(struct module_state *state, PyArray_Descr *dtype, int ndim, const npy_intp shape[], bool fortran)
{
    const npy_intp bytes = PyArray_MultiplyList(shape, ndim) * PyDataType_ELSIZE(dtype);
    Py_INCREF((PyObject *)dtype);
    if (bytes < KEPT_SUM_MIN)
        return PyArray_Empty(ndim, shape, dtype, fortran);
    if (bytes < OUTPUT_POOL_MIN)
        return medium_result(state, dtype, ndim, shape, fortran, (size_t)bytes);
    return pooled_result(state, dtype, ndim, shape, fortran);
}

static void *
handler_malloc(void *Py_UNUSED(context), size_t bytes)
{
    return output_pool_take(bytes);
}

static void *
handler_calloc(void *Py_UNUSED(context), size_t count, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : output_pool_take_zeroed(bytes);
}

static void *
handler_realloc(void *Py_UNUSED(context), void *block, size_t bytes)
{
    return block ? output_pool_resize(block, bytes) : output_pool_take(bytes);
}

static void
handler_free(void *Py_UNUSED(context), void *block, size_t Py_UNUSED(bytes))
{
    output_pool_give(block);
}

/* An array keeps the handler that made it, so it owns its data like any other, and NumPy resizes and frees it. */
static PyDataMem_Handler output_handler = {
    .name = "vecadd_output_pool",
    .version = 1,
    .allocator = {.malloc = handler_malloc, .calloc = handler_calloc, .realloc = handler_realloc, .free = handler_free},
};

PyObject *
output_handler_make(void)
{
    return PyCapsule_New(&output_handler, "mem_handler", NULL);
}

static bool
is_like(const struct device_shape *expected, const struct owned_operand *like)
{
    return expected->dtype == like->operand.dtype && expected->ndim == like->operand.ndim && !expected->strides &&
           memcmp(expected->shape, like->operand.shape, (size_t)expected->ndim * sizeof *expected->shape) == 0;
}

/* The axes of the expected array as a new tuple, the largest stride first. */
static PyObject *
axes_of(const struct device_shape *expected)
{
    Py_ssize_t axes[MAX_DIMENSIONS];
    for (int i = 0; i < expected->ndim; i++) {
        int at = i;
        for (; at > 0 && expected->strides[axes[at - 1]] < expected->strides[i]; at--)
            axes[at] = axes[at - 1];
        axes[at] = i;
    }
    return tuple_of_sizes(expected->ndim, axes);
}

/* The library's own array; a new reference to None where the library cannot make it. */
static PyObject *
library_result(const struct owned_operand *like, const struct device_shape *expected, void *stream)
{
    if (!like->library)
        return Py_NewRef(Py_None);
    const bool same = is_like(expected, like);
    /* The library's allocator keeps the handle with the memory. */
    OWNED PyObject *handle =
        stream == like->operand.stream ? Py_NewRef(Py_None) : PyLong_FromVoidPtr(stream_of_all_threads(stream));
    OWNED PyObject *shape = same || !handle ? NULL : tuple_of_sizes(expected->ndim, expected->shape);
    OWNED PyObject *axes = !shape ? NULL : expected->strides ? axes_of(expected) : Py_NewRef(Py_None);
    PyObject *made = NULL;
    if (handle && (same || axes))
        made =
            library_empty_like(like->library, like->exported, handle, shape, dtype_table[expected->dtype].name, axes);
    return made;
}

void
sum_stream_clear(struct sum_stream *stream)
{
    later_stream_clear(&stream->later);
}

static PyObject *
new_device_array(struct module_state *state, const struct device_shape *expected, int device, struct sum_stream *stream,
                 struct owned_operand *result)
{
    if (!stream->found && later_stream_find(&stream->later, stream->stream, device, stream->given, stream->objects,
                                            ROLE_COUNT, stream->lists) < 0)
        return NULL;
    stream->found = true;
    PyObject *made = device_array_new(state, device, &stream->later, expected->dtype, expected->ndim, expected->shape,
                                      expected->strides);
    if (made) {
        const struct device_array *array = (struct device_array *)made;
        result->operand = operand_of_sum(expected, device, array->data, device_array_home(array));
        /* Allocated on `stream`, which waits for the legacy one by itself. */
        result->operand.has_stream = result->operand.stream != NULL;
    }
    return made;
}

PyObject *
device_result(struct module_state *state, const struct owned_operand *like, const struct device_shape *expected,
              int device, struct sum_stream *stream, struct tensor_form *form, struct owned_operand *result)
{
    PyObject *made = NULL;
    result->exported = NULL;
    result->library = NULL;
    result->needs_keepalive = false;
    if (like->library && stream->stream == like->operand.stream) {
        made = torch_empty_like(state, like, expected, form, result);
        if (!made && !PyErr_Occurred() && is_like(expected, like))
            made = cupy_empty_like(state, like, expected, result);
        if (made || PyErr_Occurred())
            return made;
    }
    made = library_result(like, expected, stream->stream);
    if (!made)
        return NULL;
    if (Py_IsNone(made)) {
        Py_DECREF(made);
        return new_device_array(state, expected, device, stream, result);
    }
    /* Python code of the library made it, so it is read and checked as any other operand. */
    int found = device_operand_from(state, made, ROLE_OUT, NULL, result);
    if (found > 0 && operand_is_expected(&result->operand, expected))
        return made;
    if (found > 0)
        device_operand_clear(result);
    if (found >= 0)
        PyErr_SetString(PyExc_RuntimeError,
                        "the operands' library made no contiguous device array of the sum's shape, dtype and order");
    Py_DECREF(made);
    return NULL;
}
