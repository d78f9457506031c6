/* The files that `vecadd tune` writes, from Python: their paths, and their contents. */
#include <limits.h>

#include "base/tuned_file.h"
#include "py/base/methods.h"

const char tuned_path_doc[] =
    PyDoc_STR("tuned_path($module, kind, key, /)\n--\n\n"
              "The path of the file of that kind and key, whether it exists or not; None where the environment names\n"
              "no folder, for a key that is no line, and for a path that no file can have.");

PyObject *
py_tuned_path(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const char *kind, *key;
    char path[PATH_MAX];
    if (!PyArg_ParseTuple(arguments, "ss:tuned_path", &kind, &key))
        return NULL;
    if (!tuned_file_path(kind, key, path, sizeof path))
        Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefault(path);
}

static bool
append_row(void *context, const char *name, const double *number, int count)
{
    PyObject *rows = context, *numbers = PyTuple_New(count);
    for (int i = 0; numbers && i < count; i++) {
        PyObject *value = PyFloat_FromDouble(number[i]);
        if (!value || PyTuple_SetItem(numbers, i, value) < 0)
            Py_CLEAR(numbers);
    }
    PyObject *row = numbers ? Py_BuildValue("(sN)", name, numbers) : NULL;
    const bool appended = row && PyList_Append(rows, row) == 0;
    Py_XDECREF(row);
    return appended;
}

const char tuned_rows_doc[] =
    PyDoc_STR("tuned_rows($module, kind, key, /)\n--\n\n"
              "The rows of that file, (name, numbers) each; None where there is none that is whole and of that key.");

PyObject *
py_tuned_rows(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const char *kind, *key;
    if (!PyArg_ParseTuple(arguments, "ss:tuned_rows", &kind, &key))
        return NULL;
    PyObject *rows = PyList_New(0);
    if (rows && tuned_file_read(kind, key, append_row, rows))
        return rows;
    Py_XDECREF(rows);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}
