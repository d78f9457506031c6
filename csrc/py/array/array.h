/* The functions of DeviceArray's type (type.c), by file. */
#ifndef VECADD_PY_ARRAY_ARRAY_H
#define VECADD_PY_ARRAY_ARRAY_H

#include "py/operands/device_array.h"
#include "py/operands/dlpack.h"

/* views.c */
PyObject *device_array_subscript(struct device_array *self, PyObject *key);
PyObject *device_array_item(struct device_array *self, Py_ssize_t index);
PyObject *device_array_iterate(struct device_array *self);
int device_array_assign(struct device_array *self, PyObject *key, PyObject *value);
PyObject *device_array_reshape(struct device_array *self, PyObject *arguments);
extern const char device_array_reshape_doc[];

static inline struct module_state *
state_of(struct device_array *self)
{
    return PyType_GetModuleState(Py_TYPE((PyObject *)self));
}

/* copies.c. The copy is a new C-contiguous array of the same elements, queued on the home stream, which is also its
 * own. */
PyObject *device_array_copy(struct device_array *self, PyObject *none);
PyObject *device_array_numpy(struct device_array *self, PyObject *arguments, PyObject *keywords);
PyObject *device_array_array(PyObject *self, PyObject *arguments, PyObject *keywords);
PyObject *device_array_reduce(struct device_array *self, PyObject *none);
PyObject *device_array_repr(struct device_array *self);
int device_array_truth(PyObject *self);
extern const char device_array_numpy_doc[];

/* export.c */
PyObject *device_array_interface(struct device_array *self, void *closure);
PyObject *device_array_dlpack(struct device_array *self, PyObject *arguments, PyObject *keywords);
PyObject *device_array_dlpack_device(struct device_array *self, PyObject *none);
extern const char device_array_dlpack_doc[];

/* A capsule of DLPack's C exchange table for the type, which it keeps. */
PyObject *device_array_exchange_table(PyTypeObject *type);

#endif
