/* The ladder from Python: the rungs, and one run of one rung. */
#include <string.h>

#include "gpu/memory.h"
#include "py/base/methods.h"
#include "py/base/python.h"
#include "py/lab/rung_arguments.h"

static const char *const family_name[] = {
    [FAMILY_NONE] = "",
    [FAMILY_KERNELS] = "kernels",
    [FAMILY_PRECISION] = "precision",
    [FAMILY_TRANSPOSE] = "transpose",
    [FAMILY_SGEMM] = "sgemm",
};

static const char *const stages_name[] = {
    [STAGES_SERIAL] = "serial",
    [STAGES_OVERLAPPING] = "overlapping",
    [STAGES_SHARED] = "shared",
};

static const char *const memory_name[] = {
    [RUNG_MEMORY_PAGEABLE] = "pageable",
    [RUNG_MEMORY_PINNED] = "pinned",
    [RUNG_MEMORY_EITHER] = "either",
};

static const char *const sum_name[] = {
    [SUM_WRITTEN] = "written",  [SUM_ADDED] = "added", [SUM_ADDED_BY_EACH_THREAD] = "added by each thread",
    [SUM_RACED] = "raced",      [LEFT_COPY] = "copy",  [LEFT_TRANSPOSE] = "transpose",
    [LEFT_PRODUCT] = "product",
};

enum { POISON = 0xa5 };

static PyObject *
names_of(const char *const *texts)
{
    PyObject *names = PyList_New(0);
    for (; names && *texts; texts++)
        names = list_with(names, PyUnicode_FromString(*texts));
    return names;
}

/* The dtypes, by name, that the rung takes. */
static PyObject *
dtypes_of(const struct rung *rung)
{
    PyObject *names = PyList_New(0);
    for (int dtype = 0; names && dtype < DTYPE_COUNT; dtype++)
        if (rung_takes(rung, dtype))
            names = list_with(names, PyUnicode_FromString(dtype_table[dtype].name));
    return names;
}

/* {name: (least, usual, most)} */
static PyObject *
params_of(const struct rung *rung)
{
    PyObject *params = PyDict_New();
    for (int i = 0; params && i < RUNG_PARAMS && rung->params[i].name; i++) {
        const struct rung_param *param = &rung->params[i];
        params = dict_with(params, param->name, Py_BuildValue("(iii)", param->least, param->usual, param->most));
    }
    return params;
}

/* {name: [name of value 0, ...]} of the parameters whose values have names */
static PyObject *
choices_of(const struct rung *rung)
{
    PyObject *choices = PyDict_New();
    for (int i = 0; choices && i < RUNG_PARAMS && rung->params[i].name; i++) {
        const struct rung_param *param = &rung->params[i];
        if (param->choices)
            choices = dict_with(choices, param->name, names_of(param->choices));
    }
    return choices;
}

static PyObject *
describe(const struct rung *rung)
{
    PyObject *dtypes = dtypes_of(rung), *params = params_of(rung), *choices = choices_of(rung);
    if (!dtypes || !params || !choices) {
        Py_XDECREF(dtypes);
        Py_XDECREF(params);
        Py_XDECREF(choices);
        return NULL;
    }
    const bool transfers = rung->kind == RUNG_TRANSFER;
    return Py_BuildValue(
        "{s:s,s:s,s:s,s:z,s:s,s:N,s:s,s:N,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:n,s:N,s:N,s:s,s:s,s:N,s:N,s:(II)}", "name",
        rung->name, "kind", rung_kind_name[rung->kind], "family", family_name[rung->family], "after", rung->after,
        "changes", rung->changes, "dtypes", dtypes, "load", rung->load ? rung->load : "", "headline",
        PyBool_FromLong(rung->headline), "sum", sum_name[rung->sum], "bytes_per_element", rung->bytes_per_element,
        "bytes_per_load", rung->bytes_per_load, "loads_in_flight", rung->loads_in_flight, "block", rung->block,
        "blocks", rung->blocks, "min_cc", rung->min_cc, "alignment", (Py_ssize_t)rung->alignment, "params", params,
        "choices", choices, "stages", transfers ? stages_name[rung->stages] : "", "memory",
        transfers ? memory_name[rung->memory] : "", "allocates", PyBool_FromLong(rung->allocates), "by_name",
        PyBool_FromLong(rung->by_name), "tile", rung->tile.rows, rung->tile.columns);
}

PyObject *
py_rungs(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    PyObject *list = PyList_New(0);
    const struct rung *rung;
    for (size_t i = 0; list && (rung = rung_at(i)); i++)
        list = list_with(list, describe(rung));
    return list;
}

static int
run(struct rung_arguments *given, double *seconds, struct status *status)
{
    if (rung_takes_device_arrays(given->rung) && rung_arguments_join(given, status) < 0)
        return -1;
    return rung_time(given->rung, &given->call, seconds, status);
}

PyObject *
py_run_rung(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"", "", "", "", "block", "params", NULL};
    struct module_state *state = PyModule_GetState(module);
    PyObject *objects[ROLE_COUNT];
    const char *name;
    int block = 0;
    PyObject *params = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "sOOO|$iO!:run_rung", names, &name, &objects[ROLE_A],
                                     &objects[ROLE_B], &objects[ROLE_OUT], &block, &PyDict_Type, &params))
        return NULL;
    struct rung_arguments given;
    if (rung_arguments_from(state, name, objects, block, params, &given) < 0)
        return NULL;

    struct status status;
    double seconds;
    const int failed = WITHOUT_GIL(run(&given, &seconds, &status));
    return failed ? status_raise(state, &status) : PyFloat_FromDouble(seconds);
}

static PyObject *
fill(PyObject *module, PyObject *object, int byte)
{
    struct module_state *state = PyModule_GetState(module);
    struct operand x;
    if (rung_operand(state, object, "x", &x) < 0)
        return NULL;
    if (!x.writable)
        return PyErr_Format(PyExc_ValueError, "x is read-only");
    size_t bytes = x.size * dtype_table[x.dtype].itemsize;
    struct status status;
    int failed = 0;
    PyThreadState *released = PyEval_SaveThread();
    if (x.place == PLACE_DEVICE)
        failed = device_fill(x.device, x.stream, x.data, byte, bytes, &status);
    else
        memset(x.data, byte, bytes);
    PyEval_RestoreThread(released);
    return failed ? status_raise(state, &status) : Py_NewRef(Py_None);
}

PyObject *
py_poison(PyObject *module, PyObject *object)
{
    return fill(module, object, POISON);
}

PyObject *
py_clear(PyObject *module, PyObject *object)
{
    return fill(module, object, 0);
}
