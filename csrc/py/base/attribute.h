/* An optional attribute. */
#ifndef VECADD_PY_BASE_ATTRIBUTE_H
#define VECADD_PY_BASE_ATTRIBUTE_H

#include "py/base/python.h"

/* 1 with a new reference, 0 after an AttributeError, or -1 with an exception set. */
int optional_attribute(PyObject *object, PyObject *name, PyObject **value);

/* 1, 0 (after whatever clear_refusal() clears), or -1 with an exception set. PyObject_HasAttr would clear any. */
int has_attribute(PyObject *object, PyObject *name);

#endif
