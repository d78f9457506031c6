#include "py/lab/probe_call.h"

#include <string.h>

#include "py/base/errors.h"

/* Makes a probe's request from its arguments. Returns 0, or -1 with an exception set. */
static int
parse(PyObject *arguments, PyObject *keywords, const char *format, struct request *request)
{
    static char *just_device[] = {"device", NULL}, *all[] = {"device", "nbytes", "rounds", NULL};
    *request = (struct request){.bytes = 1, .rounds = 1};
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, format, format[1] == ':' ? just_device : all,
                                     &request->device, &request->bytes, &request->rounds))
        return -1;
    if (request->device >= 0 && request->bytes > 0 && request->rounds > 0)
        return 0;
    if (request->device < 0)
        PyErr_Format(PyExc_ValueError, "device must be at least 0, not %d", request->device);
    else
        PyErr_Format(PyExc_ValueError, "%s must be at least 1, not %zd", request->bytes < 1 ? "nbytes" : "rounds",
                     request->bytes < 1 ? request->bytes : (Py_ssize_t)request->rounds);
    return -1;
}

int
probe_measure(PyObject *module, PyObject *arguments, PyObject *keywords, const struct probe *probe, union found *found)
{
    struct request request;
    struct status status;
    if (parse(arguments, keywords, probe->format, &request) < 0)
        return -1;
    PyThreadState *released = PyEval_SaveThread();
    const int failed = probe->measure(&request, found, &status);
    PyEval_RestoreThread(released);
    if (failed)
        status_raise(PyModule_GetState(module), &status);
    return failed;
}

/* Sets dict[name]. Takes the dict and the value, either NULL after an error; returns the dict, or NULL. */
static PyObject *
add(PyObject *dict, const char *name, PyObject *value)
{
    if (dict && (!value || PyDict_SetItemString(dict, name, value) < 0))
        Py_CLEAR(dict);
    Py_XDECREF(value);
    return dict;
}

static double
figure_of(const void *from, const struct figure *figure)
{
    double value;
    memcpy(&value, (const char *)from + figure->offset, sizeof value);
    return value;
}

PyObject *
probe_add_figures(PyObject *dict, const struct figure *figures, const void *from)
{
    for (; dict && figures && figures->name; figures++)
        dict = add(dict, figures->name, PyFloat_FromDouble(figure_of(from, figures)));
    return dict;
}

/* add() for a list. */
static PyObject *
append(PyObject *list, PyObject *number)
{
    if (list && (!number || PyList_Append(list, number) < 0))
        Py_CLEAR(list);
    Py_XDECREF(number);
    return list;
}

static PyObject *
sizes_of(const char *array, size_t stride, int count)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < count; i++) {
        size_t bytes;
        memcpy(&bytes, array + (size_t)i * stride, sizeof bytes);
        list = append(list, PyLong_FromSize_t(bytes));
    }
    return list;
}

static PyObject *
column_of(const char *array, size_t stride, int count, const struct figure *column)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < count; i++)
        list = append(list, PyFloat_FromDouble(figure_of(array + (size_t)i * stride, column)));
    return list;
}

PyObject *
probe_dict(const struct probe *probe, const union found *found)
{
    PyObject *dict = probe_add_figures(PyDict_New(), probe->figures, found);
    if (!probe->columns)
        return dict;
    const char *array = (const char *)found + probe->array;
    if (dict)
        dict = add(dict, "bytes", sizes_of(array, probe->stride, probe->count));
    for (const struct figure *column = probe->columns; dict && column->name; column++)
        dict = add(dict, column->name, column_of(array, probe->stride, probe->count, column));
    return dict;
}

PyObject *
probe_run(PyObject *module, PyObject *arguments, PyObject *keywords, const struct probe *probe)
{
    union found found;
    return probe_measure(module, arguments, keywords, probe, &found) < 0 ? NULL : probe_dict(probe, &found);
}
