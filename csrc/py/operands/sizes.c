#include "py/operands/sizes.h"

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
    PyErr_Format(PyExc_TypeError, "%s must be a tuple of ints, not %R", what, given);
    return -1;
}

int
sizes_of_tuple(PyObject *tuple, const char *what, Py_ssize_t *sizes)
{
    if (!PyTuple_Check(tuple))
        return not_sizes(tuple, what);
    Py_ssize_t count = PyTuple_Size(tuple);
    if (count > MAX_DIMENSIONS) {
        PyErr_Format(PyExc_ValueError, "%s has %zd dimensions, more than the %d of an array", what, count,
                     MAX_DIMENSIONS);
        return -1;
    }
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
