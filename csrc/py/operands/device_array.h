/* vecadd.DeviceArray: an array in device memory that vecadd allocated, or a view of one. */
#ifndef VECADD_PY_OPERANDS_DEVICE_ARRAY_H
#define VECADD_PY_OPERANDS_DEVICE_ARRAY_H

#include "base/operand.h"
#include "gpu/buffer.h"
#include "py/base/python.h"
#include "py/operands/kept_streams.h"

struct device_array {
    PyObject_VAR_HEAD;
    struct device_buffer *block; /* this array, as each view of it, is a holder */
    void *data;                  /* the first element, in the block; NULL where size is 0 */
    size_t size;
    enum dtype dtype;
    int ndim, device;
    bool contiguous;    /* C order, as is every array without elements */
    Py_ssize_t shape[]; /* then the strides in bytes, then in elements: device_array_strides(), device_array_steps() */
};

static inline Py_ssize_t *
device_array_strides(struct device_array *array)
{
    return array->shape + array->ndim;
}

static inline Py_ssize_t *
device_array_steps(struct device_array *array)
{
    return array->shape + 2 * array->ndim;
}

/* The home stream: the memory is used in its order. */
static inline void *
device_array_home(const struct device_array *array)
{
    return device_buffer_home(array->block);
}

/* The home stream for another array that is made on it while this one is alive. */
static inline struct later_stream
device_array_later(const struct device_array *array)
{
    return (struct later_stream){device_array_home(array), device_buffer_home_kept(array->block), true};
}

static inline size_t
device_array_nbytes(const struct device_array *array)
{
    return array->size * dtype_table[array->dtype].itemsize;
}

/* A new array of uninitialised memory, for work that is queued on `stream` in this call. Its home is that stream, where
 * it can be used later, or one in its place (stream_home). NULL with an exception set. `strides`, in bytes,
 * are those of contiguous memory; NULL: C order. */
PyObject *device_array_new(struct module_state *state, int device, const struct later_stream *stream, enum dtype dtype,
                           int ndim, const Py_ssize_t *shape, const Py_ssize_t *strides);

/* A new array in the memory of `base`: `data` is its first element, strides are in bytes, NULL for C order. */
PyObject *device_array_view(struct device_array *base, enum dtype dtype, void *data, int ndim, const Py_ssize_t *shape,
                            const Py_ssize_t *strides);

/* device_array_view of a block on `device`. */
PyObject *device_array_in(PyTypeObject *type, struct device_buffer *block, int device, enum dtype dtype, void *data,
                          int ndim, const Py_ssize_t *shape, const Py_ssize_t *strides);

/* A contiguous array as an operand for rungs. Leaves out a view's strides. */
struct operand device_array_operand(const struct device_array *array);

#endif
