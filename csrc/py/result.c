#include "result.h"

#include "device_array.h"
#include "foreign.h"
#include "output_pool.h"

PyObject *
host_result(const struct module_state *state, PyArray_Descr *dtype, int ndim, const npy_intp shape[], bool fortran)
{
    const npy_intp bytes = PyArray_MultiplyList(shape, ndim) * PyDataType_ELSIZE(dtype);
    Py_INCREF((PyObject *)dtype); /* PyArray_Empty takes it */
    if (bytes < OUTPUT_POOL_LEAST)
        return PyArray_Empty(ndim, shape, dtype, fortran);
    PyObject *before = PyDataMem_SetHandler(state->output_handler);
    if (!before) {
        Py_DECREF((PyObject *)dtype);
        return NULL;
    }
    PyObject *result = PyArray_Empty(ndim, shape, dtype, fortran);
    PyObject *ours = PyDataMem_SetHandler(before);
    if (!ours)
        Py_CLEAR(result);
    Py_XDECREF(ours);
    Py_DECREF(before);
    return result;
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

/* An array keeps the handler that made it, so that it owns its data like any other, and NumPy resizes and frees it. */
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

/* The library's own array; a new reference to None where it makes none. */
static PyObject *
library_result(const struct device_operand *like, void *stream)
{
    if (!like->library)
        return Py_NewRef(Py_None);
    if (stream == like->operand.stream)
        return foreign_empty_like(like->library, like->exported, NULL);
    PyObject *handle = PyLong_FromVoidPtr(stream);
    PyObject *made = handle ? foreign_empty_like(like->library, like->exported, handle) : NULL;
    Py_XDECREF(handle);
    return made;
}

PyObject *
device_result(struct module_state *state, const struct device_operand *like, int device, void *stream,
              struct device_operand *result)
{
    PyObject *made = NULL;
    if (like->library && stream == like->operand.stream) {
        made = torch_empty_like(state, like, result);
        if (!made)
            made = cupy_empty_like(state, like, result);
        if (made)
            return made;
    }
    made = library_result(like, stream);
    if (made && Py_IsNone(made)) {
        Py_DECREF(made);
        made = device_array_new(state, device, stream, like->operand.dtype, like->ndim, like->shape);
    }
    if (!made)
        return NULL;
    int found = device_operand_from(state, made, ROLE_OUT, NULL, result);
    if (found > 0 && device_operands_match(like, result))
        return made;
    if (found > 0)
        device_operand_clear(result);
    if (found >= 0)
        PyErr_SetString(PyExc_RuntimeError,
                        "the operands' library made no contiguous device array of their shape and dtype for the sum");
    Py_DECREF(made);
    return NULL;
}
