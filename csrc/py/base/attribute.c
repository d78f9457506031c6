#include "py/base/attribute.h"

#include "py/base/errors.h"

int
optional_attribute(PyObject *object, PyObject *name, PyObject **value)
{
    *value = PyObject_GetAttr(object, name);
    if (*value)
        return 1;
    if (!PyErr_ExceptionMatches(PyExc_AttributeError))
        return -1;
    PyErr_Clear();
    return 0;
}

int
has_attribute(PyObject *object, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(object, name);
    if (!value)
        return clear_refusal();
    Py_DECREF(value);
    return 1;
}
