/* vecadd.add_many: the additions of two lists as one piece of work. */
#include "py/base/methods.h"
#include "py/calls/batch.h"

static int
parse(const struct module_state *state, PyObject *const *values, Py_ssize_t positional, PyObject *keywords,
      struct batch_arguments *arguments)
{
    if (positional < 2 || positional > 3) {
        PyErr_Format(PyExc_TypeError, "add_many() takes from 2 to 3 positional arguments but %zd were given",
                     positional);
        return -1;
    }
    *arguments = (struct batch_arguments){values[0], values[1], positional == 3 ? values[2] : NULL, NULL, false};
    Py_ssize_t count = keywords ? PyTuple_Size(keywords) : 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name = PyTuple_GetItem(keywords, i);
        bool is_out = PyUnicode_Compare(name, state->names[NAME_OUT]) == 0;
        if (is_out && positional == 3) {
            PyErr_SetString(PyExc_TypeError, "add_many() got multiple values for argument 'out'");
            return -1;
        }
        if (!is_out && PyUnicode_Compare(name, state->names[NAME_STREAM]) != 0) {
            const bool is_device = PyUnicode_Compare(name, state->names[NAME_DEVICE]) == 0;
            PyErr_Format(PyExc_TypeError, "add_many() got an unexpected keyword argument '%U'%s", name,
                         is_device ? ": it adds where the arrays are; call add(x, y, device=...) for each pair" : "");
            return -1;
        }
        *(is_out ? &arguments->out : &arguments->stream) = values[positional + i];
    }
    if (arguments->out && Py_IsNone(arguments->out))
        arguments->out = NULL;
    if (arguments->stream && Py_IsNone(arguments->stream))
        arguments->stream = NULL;
    return 0;
}

const char add_many_doc[] = PyDoc_STR(
    "add_many($module, xs, ys, /, out=None, *, stream=None)\n--\n\n"
    "[x + y for x, y in zip(xs, ys)], made together: one launch on a GPU, one pass of the threads on the host.\n\n"
    "The pairs may differ in shape and dtype; each is added as vecadd.add adds it, and the list that is given\n"
    "back holds the sums in the pairs' order, each of its own pair's library. All are in host memory, or all on\n"
    "one device. Pairs of contiguous arrays of one shape and one dtype, aligned in any way, are what is made\n"
    "together (1023 a launch); every other pair is added by itself after them. Floating-point warnings on the host\n"
    "are given once for those made together. On a device the call returns when the work is queued.\n\n"
    "out\n"
    "    Where the sums go, a list of arrays; it is given back. An out may be its own pair's x or y. The additions\n"
    "    are made in any order: an out that overlaps an array of another pair is an error, where both are\n"
    "    contiguous; overlaps of strided arrays are not looked for. An error that is found before the work starts\n"
    "    leaves every out as it was.\n"
    "stream\n"
    "    As add's, for all pairs.\n\n"
    "Raises what add raises, the message begun with the pair's number, counted from 0; TypeError for what is no\n"
    "list, as a dict, and for pairs of host and of device memory in one call; ValueError for lists of different\n"
    "lengths, pairs on two devices and an out that overlaps an array of another pair.\n\n"
    ">>> xs, ys = [np.ones(2), np.arange(3)], [np.ones(2), 10]\n"
    ">>> vecadd.add_many(xs, ys)\n"
    "[array([2., 2.]), array([10, 11, 12])]");

PyObject *
py_add_many(PyObject *module, PyObject *const *values, Py_ssize_t count, PyObject *keywords)
{
    struct module_state *state = PyModule_GetState(module);
    struct batch_arguments arguments;
    struct batch_call call;
    if (parse(state, values, count, keywords, &arguments) < 0 || batch_prepare(state, &arguments, &call) < 0)
        return NULL;
    PyObject *result = batch_run(module, &call, NULL) < 0 ? NULL : Py_NewRef(call.result);
    batch_clear(&call);
    return result;
}
