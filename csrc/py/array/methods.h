/* The functions of DeviceArray's type (device_array_type.c), by file. */
#ifndef VECADD_PY_ARRAY_METHODS_H
#define VECADD_PY_ARRAY_METHODS_H

#include "py/operands/device_array.h"
#include "py/operands/dlpack.h"

/* A new C-contiguous array of the same elements, queued on the home stream, which is also the copy's. */
PyObject *device_array_copy(struct device_array *self, PyObject *none);

/* views.c */
PyObject *device_array_subscript(struct device_array *self, PyObject *key);
PyObject *device_array_item(struct device_array *self, Py_ssize_t index);
PyObject *device_array_iterate(struct device_array *self);
int device_array_assign(struct device_array *self, PyObject *key, PyObject *value);
PyObject *device_array_reshape(struct device_array *self, PyObject *arguments);
extern const char device_array_reshape_doc[];

/* host_copy.c */
PyObject *device_array_numpy(struct device_array *self, PyObject *arguments, PyObject *keywords);
PyObject *device_array_array(PyObject *self, PyObject *arguments, PyObject *keywords);
PyObject *device_array_reduce(struct device_array *self, PyObject *none);
PyObject *device_array_repr(struct device_array *self);
int device_array_truth(PyObject *self);
extern const char device_array_numpy_doc[];

/* ufunc.c */
PyObject *device_array_ufunc(PyObject *self, PyObject *arguments, PyObject *keywords);

/* export.c */
PyObject *device_array_interface(struct device_array *self, void *closure);
PyObject *device_array_dlpack(struct device_array *self, PyObject *arguments, PyObject *keywords);
PyObject *device_array_dlpack_device(struct device_array *self, PyObject *none);
extern const char device_array_dlpack_doc[];

/* The array as a tensor that lives as long as the array. */
struct dl_tensor device_array_tensor(struct device_array *array);

/* The array's memory for a consumer that works on the legacy default stream and calls the deleter; NULL with an
 * exception set. */
struct dl_managed_tensor *device_array_lend(struct device_array *array);

/* A new array in the memory of such a tensor, which stays the caller's; NULL with an exception set. */
PyObject *device_array_of_lent(PyTypeObject *type, const struct dl_managed_tensor *managed);

/* The tensor's deleter, for a caller that has ordered the array's stream after the consumer's work. */
void device_array_end_loan(struct dl_managed_tensor *managed);

/* exchange_table.c: a capsule of DLPack's C exchange table for the type, which it keeps. */
PyObject *device_array_exchange_table(PyTypeObject *type);

#endif
