/* vecadd.DeviceArray: a C-contiguous array in device memory that vecadd allocated. */
#ifndef VECADD_DEVICE_ARRAY_H
#define VECADD_DEVICE_ARRAY_H

#include "block.h"
#include "module.h"
#include "operand.h"

struct device_array {
    PyObject_VAR_HEAD;
    struct device_block *block; /* held once */
    void *data;                 /* in the block; NULL where size is 0 */
    size_t size;
    enum dtype dtype;
    int ndim, device;
    void *stream; /* its home: the memory is allocated, used and released in this stream's order */
    Py_ssize_t shape[];
};

/* A new array of uninitialised memory, to be used in the order of `stream`; NULL with an exception set. */
PyObject *device_array_new(struct module_state *state, int device, void *stream, enum dtype dtype, int ndim,
                           const Py_ssize_t *shape);

/* Methods of device_array_export.c. */
PyObject *device_array_interface(struct device_array *self, void *closure);
PyObject *device_array_dlpack(struct device_array *self, PyObject *arguments, PyObject *keywords);
PyObject *device_array_dlpack_device(struct device_array *self, PyObject *none);
extern const char device_array_dlpack_doc[];

struct operand device_array_operand(const struct device_array *array);

static inline size_t
device_array_nbytes(const struct device_array *array)
{
    return array->size * dtype_table[array->dtype].itemsize;
}

#endif
