/* An attribute whose descriptor is found in its type once, and called directly from then on. */
#ifndef VECADD_PY_OPERANDS_DESCRIPTOR_H
#define VECADD_PY_OPERANDS_DESCRIPTOR_H

#include "py/base/python.h"

struct descriptor {
    PyObject *name;   /* owned */
    PyObject *object; /* owned; NULL without a data descriptor: an object's own dict comes first then */
    descrgetfunc get;
};

/* The caller clears it. A type without such a descriptor is no error: the object is then asked by name. Another
 * exception stays set, and one that was set before. */
struct descriptor descriptor_find(PyObject *type, PyObject *name);

void descriptor_clear(struct descriptor *descriptor);

/* The attribute of an object of the type: a new reference, or NULL with an exception set, as for an object of a type
 * with another descriptor of that name. */
static inline PyObject *
descriptor_get(const struct descriptor *descriptor, PyObject *object)
{
    if (!descriptor->get)
        return PyObject_GetAttr(object, descriptor->name);
    return descriptor->get(descriptor->object, object, (PyObject *)Py_TYPE(object));
}

#endif
