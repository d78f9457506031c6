/* An attribute whose descriptor is looked up in its type once, and asked itself from then on. */
#ifndef VECADD_PY_OPERANDS_DESCRIPTOR_H
#define VECADD_PY_OPERANDS_DESCRIPTOR_H

#include "py/base/python.h"

struct descriptor {
    PyObject *name;   /* owned */
    PyObject *object; /* owned; NULL where the type has no data descriptor: an object's own dict comes first then */
    descrgetfunc get;
};

/* To be cleared. The name is found again in the object where the type has no descriptor of it: that is no error. */
struct descriptor descriptor_find(PyObject *type, PyObject *name);

void descriptor_clear(struct descriptor *descriptor);

/* The attribute of an object of that type: a new reference, or NULL with an exception set, as it is for objects of
 * types that have another one by that name. */
static inline PyObject *
descriptor_get(const struct descriptor *descriptor, PyObject *object)
{
    if (!descriptor->get)
        return PyObject_GetAttr(object, descriptor->name);
    return descriptor->get(descriptor->object, object, (PyObject *)Py_TYPE(object));
}

#endif
