/* The timeline of a transfer rung from Python. */
#include "lab/ladder/timeline.h"
#include "py/base/errors.h"
#include "py/base/methods.h"
#include "py/lab/rung_arguments.h"

const char timeline_doc[] = PyDoc_STR(
    "timeline($module, name, a, b, out, /, *, params={})\n--\n\n"
    "Runs a transfer rung once into out and returns when each of its steps began and ended: a list of tuples\n"
    "(what, stream, chunk, begin, end) in the order in which they were queued, seconds from the first begin.\n"
    "what is \"to_device\", \"kernel\" or \"to_host\", by CUDA events before and after each copy and kernel on\n"
    "its stream; streams count from 0. Where the rung allocates inside its timed part, \"allocate\" and \"free\"\n"
    "are there too, by the host's clock and with stream -1; so are managed's copies, which the host does.\n"
    "hybrid's has what its GPU does. No elements, no steps.\n\n"
    "Raises ValueError for rungs of another kind, and what run_rung raises.");

static PyObject *
list_of(const struct timeline *timeline)
{
    const struct timeline_entry *entries;
    const size_t count = timeline_entries(timeline, &entries);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *entry = Py_BuildValue("(sindd)", timeline_what_name[entries[i].what], entries[i].stream,
                                        (Py_ssize_t)entries[i].chunk, entries[i].begin, entries[i].end);
        if (!entry || PyList_SetItem(list, (Py_ssize_t)i, entry) < 0)
            Py_CLEAR(list);
    }
    return list;
}

PyObject *
py_timeline(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"", "", "", "", "params", NULL};
    struct module_state *state = PyModule_GetState(module);
    PyObject *objects[ROLE_COUNT];
    const char *name;
    PyObject *params = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "sOOO|$O!:timeline", names, &name, &objects[ROLE_A],
                                     &objects[ROLE_B], &objects[ROLE_OUT], &PyDict_Type, &params))
        return NULL;
    const struct rung *rung = rung_named(name);
    if (rung && rung->kind != RUNG_TRANSFER)
        return PyErr_Format(PyExc_ValueError, "%s is a %s rung; a timeline is of a transfer rung", name,
                            rung_kind_name[rung->kind]);
    struct rung_arguments given;
    if (rung_arguments_from(state, name, objects, 0, params, &given) < 0)
        return NULL;
    struct timeline *timeline = given.call.timeline = timeline_new();
    if (!timeline)
        return PyErr_NoMemory();

    struct status status;
    PyThreadState *released = PyEval_SaveThread();
    int failed = rung->run(&given.call, &status);
    PyEval_RestoreThread(released);
    PyObject *list = failed ? status_raise(state, &status) : list_of(timeline);
    timeline_free(timeline);
    return list;
}
