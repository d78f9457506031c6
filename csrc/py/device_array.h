/* vecadd.DeviceArray: a C-contiguous array in device memory that vecadd allocated. */
#ifndef VECADD_DEVICE_ARRAY_H
#define VECADD_DEVICE_ARRAY_H

#include "module.h"
#include "operand.h"

struct device_array {
    PyObject_VAR_HEAD;
    void *data; /* NULL where size is 0 */
    size_t size;
    enum dtype dtype;
    int ndim, device;
    void *stream; /* its home: the memory is allocated, used and released in this stream's order */
    Py_ssize_t shape[];
};

/* A new array of uninitialised memory, to be used in the order of `stream`; NULL with an exception set. */
PyObject *device_array_new(struct module_state *state, int device, void *stream, enum dtype dtype, int ndim,
                           const Py_ssize_t *shape);

struct operand device_array_operand(const struct device_array *array);

static inline size_t
device_array_nbytes(const struct device_array *array)
{
    return array->size * dtype_table[array->dtype].itemsize;
}

#endif
