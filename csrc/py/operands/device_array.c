#include "py/operands/device_array.h"

#include "base/layout.h"
#include "gpu/device.h"
#include "gpu/stream.h"
#include "py/base/python.h"

/* An array without memory. `strides` may be NULL for C order. */
static struct device_array *
array_alloc(PyTypeObject *type, int device, enum dtype dtype, int ndim, const Py_ssize_t *shape,
            const Py_ssize_t *strides)
{
    struct device_array *array = (struct device_array *)PyType_GenericAlloc(type, 3 * (Py_ssize_t)ndim);
    if (!array)
        return NULL;
    array->block = NULL;
    array->data = NULL;
    array->size = 1;
    array->dtype = dtype;
    array->ndim = ndim;
    array->device = device;
    const size_t itemsize = dtype_table[dtype].itemsize;
    for (int i = ndim; i-- > 0;) {
        array->shape[i] = shape[i];
        device_array_strides(array)[i] = strides ? strides[i] : (Py_ssize_t)(array->size * itemsize);
        device_array_steps(array)[i] = strides ? strides[i] / (Py_ssize_t)itemsize : (Py_ssize_t)array->size;
        array->size *= (size_t)shape[i];
    }
    array->contiguous = !strides || layout_is_contiguous(ndim, shape, strides, itemsize);
    return array;
}

PyObject *
device_array_new(struct module_state *state, int device, const struct later_stream *stream, enum dtype dtype, int ndim,
                 const Py_ssize_t *shape, const Py_ssize_t *strides)
{
    struct device_array *array = array_alloc(state->device_array_type, device, dtype, ndim, shape, strides);
    if (!array)
        return NULL;

    struct status status;
    struct stream_home home;
    array->block = device_buffer_reuse(device, stream->stream, device_array_nbytes(array));
    if (!array->block) {
        /* When out of memory it waits for the stream, whose work may need the GIL (as CuPy's host functions do). */
        PyThreadState *released = PyEval_SaveThread();
        if (stream_home(device, stream->stream, stream->kept, stream->lasting, &home, &status) == 0)
            array->block = device_buffer_make(device, &home, device_array_nbytes(array), &status);
        PyEval_RestoreThread(released);
    }
    if (array->block) {
        array->data = device_buffer_memory(array->block);
        return (PyObject *)array;
    }
    Py_DECREF(array);
    return status_raise(state, &status);
}

PyObject *
device_array_view(struct device_array *base, enum dtype dtype, void *data, int ndim, const Py_ssize_t *shape,
                  const Py_ssize_t *strides)
{
    return device_array_in(Py_TYPE((PyObject *)base), base->block, base->device, dtype, data, ndim, shape, strides);
}

PyObject *
device_array_in(PyTypeObject *type, struct device_buffer *block, int device, enum dtype dtype, void *data, int ndim,
                const Py_ssize_t *shape, const Py_ssize_t *strides)
{
    struct device_array *view = array_alloc(type, device, dtype, ndim, shape, strides);
    if (!view)
        return NULL;
    view->block = block;
    view->data = view->size ? data : NULL;
    device_buffer_retain(view->block);
    return (PyObject *)view;
}

struct operand
device_array_operand(const struct device_array *array)
{
    return (struct operand){.data = array->data,
                            .size = array->size,
                            .dtype = array->dtype,
                            .place = PLACE_DEVICE,
                            .device = array->device,
                            .writable = true,
                            .has_stream = true,
                            .stream = device_array_home(array)};
}
