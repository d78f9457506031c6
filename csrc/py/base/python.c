/* Helpers of every other file of csrc/py, and NumPy's function tables, which they all use. */
#define VECADD_IMPORTS_NUMPY
#include "py/base/python.h"

#include <stdarg.h>
#include <string.h>

int
numpy_api_import(void)
{
    return PyArray_ImportNumPyAPI() < 0 || PyUFunc_ImportUFuncAPI() < 0 ? -1 : 0;
}

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
    OWNED PyObject *value = PyObject_GetAttr(object, name);
    if (!value)
        return clear_refusal();
    return 1;
}

PyObject *
imported(const char *module, const char *name)
{
    OWNED PyObject *found = PyImport_ImportModule(module);
    return found ? PyObject_GetAttrString(found, name) : NULL;
}

PyObject *
call_imported(const char *module, const char *function, const char *format, ...)
{
    va_list given;
    OWNED PyObject *called = imported(module, function);
    va_start(given, format);
    OWNED PyObject *arguments = called ? Py_VaBuildValue(format, given) : NULL;
    va_end(given);
    return arguments ? PyObject_CallObject(called, arguments) : NULL;
}

/* NULL: vecadd.DeviceLostError, which is in the module's state. */
static PyObject **const exception_types[STATUS_CODE_COUNT] = {
    [STATUS_OK] = &PyExc_SystemError,       [STATUS_VALUE] = &PyExc_ValueError,
    [STATUS_MEMORY] = &PyExc_MemoryError,   [STATUS_NO_CUDA_BUILD] = &PyExc_RuntimeError,
    [STATUS_NO_GPU] = &PyExc_RuntimeError,  [STATUS_DRIVER_TOO_OLD] = &PyExc_RuntimeError,
    [STATUS_FORKED] = &PyExc_RuntimeError,  [STATUS_DEVICE_LOST] = NULL,
    [STATUS_CAPTURE] = &PyExc_RuntimeError, [STATUS_CUDA] = &PyExc_RuntimeError,
};

int
clear_refusal(void)
{
    PyObject *const refusals[] = {PyExc_AttributeError, PyExc_BufferError, PyExc_OverflowError,
                                  PyExc_RuntimeError,   PyExc_TypeError,   PyExc_ValueError};
    if (!PyErr_Occurred())
        return 0;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (PyErr_ExceptionMatches(refusals[i])) {
            PyErr_Clear();
            return 0;
        }
    return -1;
}

int
refuse(PyObject *exception, const char *format, ...)
{
    va_list given;
    va_start(given, format);
    PyErr_FormatV(exception, format, given);
    va_end(given);
    return -1;
}

void *
status_raise(const struct module_state *state, const struct status *status)
{
    PyObject **type = exception_types[status->code];
    /* The text may be cut inside a character, and may quote an environment variable of any bytes. */
    PyObject *text = PyUnicode_DecodeUTF8(status->text, (Py_ssize_t)strlen(status->text), "replace");
    if (text) {
        PyErr_SetObject(type ? *type : state->device_lost_error, text);
        Py_DECREF(text);
    }
    return NULL;
}

enum name
keyword_name(const struct module_state *state, PyObject *keyword)
{
    static const enum name ours[] = {NAME_OUT, NAME_DEVICE, NAME_STREAM};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (keyword == state->names[ours[i]])
            return ours[i];
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) /* for names built at run time, which are not interned */
        if (PyUnicode_Compare(keyword, state->names[ours[i]]) == 0)
            return ours[i];
    return NAME_COUNT;
}

PyObject *
list_with(PyObject *list, PyObject *item)
{
    if (list && (!item || PyList_Append(list, item) < 0))
        Py_CLEAR(list);
    Py_XDECREF(item);
    return list;
}

PyObject *
dict_with(PyObject *dict, const char *name, PyObject *value)
{
    if (dict && (!value || PyDict_SetItemString(dict, name, value) < 0))
        Py_CLEAR(dict);
    Py_XDECREF(value);
    return dict;
}

PyObject *
tuple_of_sizes(int ndim, const Py_ssize_t *sizes)
{
    PyObject *tuple = PyTuple_New(ndim);
    for (int i = 0; tuple && i < ndim; i++) {
        PyObject *size = PyLong_FromSsize_t(sizes[i]);
        if (!size || PyTuple_SetItem(tuple, i, size) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static int
not_sizes(PyObject *given, const char *what)
{
    return refuse(PyExc_TypeError, "%s must be a tuple of ints, not %R", what, given);
}

int
sizes_of_tuple(PyObject *tuple, const char *what, Py_ssize_t *sizes)
{
    if (!PyTuple_Check(tuple))
        return not_sizes(tuple, what);
    Py_ssize_t count = PyTuple_Size(tuple);
    if (count > MAX_DIMENSIONS)
        return refuse(PyExc_ValueError, "%s has %zd dimensions, more than the %d of an array", what, count,
                      MAX_DIMENSIONS);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GetItem(tuple, i);
        if (!PyIndex_Check(item) || PyBool_Check(item))
            return not_sizes(tuple, what);
        sizes[i] = PyNumber_AsSsize_t(item, PyExc_OverflowError);
        if (sizes[i] == -1 && PyErr_Occurred()) {
            if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
                PyErr_Clear();
                PyErr_Format(PyExc_ValueError, "%s has a size that no memory has: %R", what, tuple);
            }
            return -1;
        }
    }
    return (int)count;
}
