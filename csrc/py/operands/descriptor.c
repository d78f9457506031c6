#include "py/operands/descriptor.h"

#include "py/base/attribute.h"

struct descriptor
descriptor_find(PyObject *type, PyObject *name)
{
    struct descriptor result = {.name = Py_NewRef(name)};
    if (!PyErr_Occurred())
        optional_attribute(type, name, &result.object);
    if (result.object && PyType_GetSlot(Py_TYPE(result.object), Py_tp_descr_set))
        result.get = (descrgetfunc)PyType_GetSlot(Py_TYPE(result.object), Py_tp_descr_get);
    if (!result.get)
        Py_CLEAR(result.object);
    return result;
}

void
descriptor_clear(struct descriptor *descriptor)
{
    Py_CLEAR(descriptor->name);
    Py_CLEAR(descriptor->object);
    descriptor->get = NULL;
}
