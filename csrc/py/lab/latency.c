/* Where the time of a latency rung goes, from Python. */
#include "lab/ladder/latency.h"
#include "py/base/errors.h"
#include "py/base/methods.h"
#include "py/lab/rung_arguments.h"

static PyObject *
stages_dict(const struct latency_stages *stages)
{
    if (!stages->graph)
        return Py_BuildValue("{s:d,s:d}", "issue", stages->issue, "total", stages->total);
    return Py_BuildValue("{s:d,s:d,s:d,s:d,s:d,s:d}", "issue", stages->issue, "total", stages->total, "capture",
                         stages->capture, "instantiate", stages->instantiate, "launch", stages->total, "destroy",
                         stages->destroy);
}

const char latency_stages_doc[] = PyDoc_STR(
    "latency_stages($module, name, a, b, out, /, *, params={})\n--\n\n"
    "Runs a latency rung once into out and returns the seconds of its stages by the host's clock: 'issue' until\n"
    "all is queued and 'total' until all is done, which is what run_rung returns. Graph rungs add what lies\n"
    "outside of it: 'capture', 'instantiate' (the upload to the device included) and 'destroy'; their 'launch' is\n"
    "one call and its work, all of 'total'. Operands and params are run_rung's.\n\n"
    "Raises ValueError for a rung of another kind, and what run_rung raises.");

PyObject *
py_latency_stages(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"", "", "", "", "params", NULL};
    struct module_state *state = PyModule_GetState(module);
    PyObject *objects[ROLE_COUNT];
    const char *name;
    PyObject *params = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "sOOO|$O!:latency_stages", names, &name, &objects[ROLE_A],
                                     &objects[ROLE_B], &objects[ROLE_OUT], &PyDict_Type, &params))
        return NULL;
    struct rung_arguments given;
    if (rung_arguments_from(state, name, objects, 0, params, &given) < 0)
        return NULL;
    if (given.rung->kind != RUNG_LATENCY)
        return PyErr_Format(PyExc_ValueError, "%s is a %s rung: stages are those of the latency rungs, %s", name,
                            rung_kind_name[given.rung->kind], "which vecadd.ladder.names('latency') lists");

    struct status status;
    struct latency_stages stages;
    given.call.stages = &stages;
    PyThreadState *released = PyEval_SaveThread();
    int failed = rung_arguments_join(&given, &status) < 0 || given.rung->run(&given.call, &status) < 0;
    PyEval_RestoreThread(released);
    return failed ? status_raise(state, &status) : stages_dict(&stages);
}
