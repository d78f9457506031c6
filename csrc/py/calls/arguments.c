#include "py/calls/arguments.h"

#include "py/base/keyword.h"
#include "py/operands/where.h"

static bool
is_list(PyObject *object)
{
    return PyList_Check(object) || PyTuple_Check(object);
}

/* What out= stands for: numpy.add takes out=(c,) as out=c, out=(None,) as no out, and no other tuple. A plan of lists
 * takes a tuple of arrays. Returns NULL with an exception set. */
static PyObject *
unpacked_out(PyObject *out, const struct add_arguments *arguments)
{
    if (!PyTuple_CheckExact(out) ||
        (arguments->plans && is_list(arguments->values[0]) && is_list(arguments->values[1])))
        return out;
    if (PyTuple_Size(out) == 1)
        return PyTuple_GetItem(out, 0);
    PyErr_SetString(PyExc_ValueError, "The 'out' tuple must have exactly one entry per ufunc output");
    return NULL;
}

int
add_arguments_parse(const struct module_state *state, const char *function, bool plans, PyObject *const *values,
                    Py_ssize_t positional, PyObject *keywords, struct add_arguments *arguments)
{
    if (positional < 2 || positional > 3) {
        PyErr_Format(PyExc_TypeError, "%s() takes from 2 to 3 positional arguments but %zd were given", function,
                     positional);
        return -1;
    }
    PyObject *out = positional == 3 ? values[2] : Py_None;
    PyObject *device = Py_None, *stream = Py_None;
    *arguments =
        (struct add_arguments){.plans = plans, .values = values, .positional = positional, .keywords = keywords};

    Py_ssize_t count = keywords ? PyTuple_Size(keywords) : 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *keyword = PyTuple_GetItem(keywords, i);
        PyObject *value = values[positional + i];
        switch (keyword_name(state, keyword)) {
        case NAME_OUT:
            if (positional == 3) {
                PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument 'out'", function);
                return -1;
            }
            out = unpacked_out(value, arguments);
            if (!out)
                return -1;
            break;
        case NAME_DEVICE:
            device = value;
            break;
        case NAME_STREAM:
            stream = value;
            break;
        default:
            arguments->numpys_own = PyUnicode_AsUTF8AndSize(keyword, NULL);
            if (!arguments->numpys_own)
                return -1;
        }
    }
    arguments->objects[ROLE_A] = values[0];
    arguments->objects[ROLE_B] = values[1];
    arguments->objects[ROLE_OUT] = Py_IsNone(out) ? NULL : out;
    arguments->stream = Py_IsNone(stream) ? NULL : stream;
    return device_from_object(device, &arguments->choice, &arguments->device);
}
