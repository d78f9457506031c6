/* The ladder from Python: the rungs, one run of one rung, and outputs that no earlier run has filled. */
#include <string.h>

#include "base/now.h"
#include "gpu/memory.h"
#include "lab/ladder/device_rung.h"
#include "py/base/errors.h"
#include "py/base/methods.h"
#include "py/lab/rung_arguments.h"

static const char *const family_name[] = {
    [FAMILY_NONE] = "",
    [FAMILY_KERNELS] = "kernels",
    [FAMILY_PRECISION] = "precision",
    [FAMILY_TRANSPOSE] = "transpose",
    [FAMILY_SGEMM] = "sgemm",
};

static const char *const stages_name[] = {
    [STAGES_NONE] = "",
    [STAGES_SERIAL] = "serial",
    [STAGES_OVERLAPPING] = "overlapping",
    [STAGES_SHARED] = "shared",
};

static const char *const memory_name[] = {
    [RUNG_MEMORY_NONE] = "",
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

/* Appends the name to the list, which may be NULL. Returns the list, or NULL. */
static PyObject *
append_name(PyObject *names, const char *text)
{
    PyObject *name = names ? PyUnicode_FromString(text) : NULL;
    if (names && (!name || PyList_Append(names, name) < 0))
        Py_CLEAR(names);
    Py_XDECREF(name);
    return names;
}

static PyObject *
names_of(const char *const *texts)
{
    PyObject *names = PyList_New(0);
    for (; names && *texts; texts++)
        names = append_name(names, *texts);
    return names;
}

/* The dtypes, by name, that the rung takes. */
static PyObject *
dtypes_of(const struct rung *rung)
{
    PyObject *names = PyList_New(0);
    for (int dtype = 0; names && dtype < DTYPE_COUNT; dtype++)
        if (rung_takes(rung, dtype))
            names = append_name(names, dtype_table[dtype].name);
    return names;
}

/* {name: (least, usual, most)} */
static PyObject *
params_of(const struct rung *rung)
{
    PyObject *params = PyDict_New();
    for (int i = 0; params && i < RUNG_PARAMS && rung->params[i].name; i++) {
        const struct rung_param *param = &rung->params[i];
        PyObject *bounds = Py_BuildValue("(iii)", param->least, param->usual, param->most);
        if (!bounds || PyDict_SetItemString(params, param->name, bounds) < 0)
            Py_CLEAR(params);
        Py_XDECREF(bounds);
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
        if (!param->choices)
            continue;
        PyObject *names = names_of(param->choices);
        if (!names || PyDict_SetItemString(choices, param->name, names) < 0)
            Py_CLEAR(choices);
        Py_XDECREF(names);
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
    return Py_BuildValue(
        "{s:s,s:s,s:s,s:z,s:s,s:s,s:N,s:s,s:N,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:n,s:N,s:N,s:s,s:s,s:N,s:N,s:(IIIII)}",
        "name", rung->name, "kind", rung_kind_name[rung->kind], "family", family_name[rung->family], "after",
        rung->after, "changes", rung->changes, "tested", rung->tested, "dtypes", dtypes, "load",
        rung->load ? rung->load : "", "headline", PyBool_FromLong(rung->headline), "sum", sum_name[rung->sum],
        "bytes_per_element", rung->bytes_per_element, "bytes_per_load", rung->bytes_per_load, "loads_in_flight",
        rung->loads_in_flight, "block", rung->block, "blocks", rung->blocks, "min_cc", rung->min_cc, "alignment",
        (Py_ssize_t)rung->alignment, "params", params, "choices", choices, "stages", stages_name[rung->stages],
        "memory", memory_name[rung->memory], "allocates", PyBool_FromLong(rung->allocates), "by_name",
        PyBool_FromLong(rung->by_name), "tile", rung->tile.rows, rung->tile.columns, rung->tile.inner,
        rung->tile.thread_rows, rung->tile.thread_columns);
}

const char rungs_doc[] = PyDoc_STR(
    "rungs($module, /)\n--\n\n"
    "One dict a rung, in the ladder's order: name, kind, family, after, changes, tested, dtypes, load, headline,\n"
    "sum, bytes_per_element, bytes_per_load, loads_in_flight, block, blocks, min_cc, alignment (bytes; 0: the\n"
    "lane's own), params, choices (by parameter, the names of its values where they have names), stages (of a\n"
    "transfer: 'serial', 'overlapping', or 'shared' with the processor), memory (of a transfer: 'pageable',\n"
    "'pinned', or 'either'), allocates (a transfer's timed part always holds an allocation), by_name (a sweep of\n"
    "the ladder runs it only where it is named), tile (of a product of matrices: rows and columns of the\n"
    "result of a block, inner elements in shared memory at a time, rows and columns of a thread; else all 0).");

PyObject *
py_rungs(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    PyObject *list = PyList_New(0);
    const struct rung *rung;
    for (size_t i = 0; list && (rung = rung_at(i)); i++) {
        PyObject *row = describe(rung);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* Times the run, unless the rung sets call->seconds itself because only a part of the run counts. */
static int
run_by_host_clock(const struct rung *rung, struct rung_call *call, double *seconds, struct status *status)
{
    double given = -1;
    call->seconds = &given;
    const double begin = now_seconds();
    int failed = rung->run(call, status);
    *seconds = now_seconds() - begin;
    if (given >= 0)
        *seconds = given;
    return failed;
}

static int
run(struct rung_arguments *given, double *seconds, struct status *status)
{
    if (rung_takes_device_arrays(given->rung) && rung_arguments_join(given, status) < 0)
        return -1;
    return given->rung->launch ? rung_time_on_device(given->rung, &given->call, seconds, status)
                               : run_by_host_clock(given->rung, &given->call, seconds, status);
}

const char run_rung_doc[] = PyDoc_STR(
    "run_rung($module, name, a, b, out, /, *, block=0, params={})\n--\n\n"
    "Runs a rung once into out and returns its seconds: of a device or matrix rung by CUDA events around the\n"
    "launch, of any other by the host's clock. The operands have one dtype and size: DeviceArrays for device and\n"
    "latency rungs, contiguous NumPy arrays for the others. Those of a matrix rung are two-dimensional DeviceArrays\n"
    "of float32: a, b, whose rows are a's columns, and the product; or a, None, and a's transpose. block is a device\n"
    "rung's threads a block, 0 for its own; params are whole numbers by name, the rung's usual ones where none is\n"
    "given.\n\n"
    "Raises ValueError for a name that is not in the ladder, a size, shape, alignment, block or parameter that the\n"
    "rung does not take, a GPU below the compute capability that it needs, a read-only out, and one that overlaps\n"
    "an input; TypeError for arrays, dtypes and names of parameters that it does not take.");

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
    PyThreadState *released = PyEval_SaveThread();
    int failed = run(&given, &seconds, &status);
    PyEval_RestoreThread(released);
    return failed ? status_raise(state, &status) : PyFloat_FromDouble(seconds);
}

static PyObject *
fill(PyObject *module, PyObject *object, int byte)
{
    struct module_state *state = PyModule_GetState(module);
    struct operand x;
    if (rung_operand(state, object, "x", &x) < 0)
        return NULL;
    if (!x.writable) {
        PyErr_SetString(PyExc_ValueError, "x is read-only");
        return NULL;
    }
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

const char poison_doc[] = PyDoc_STR(
    "poison($module, x, /)\n--\n\n"
    "Overwrites the bytes of a contiguous NumPy array or a DeviceArray, so that no check of a result is passed\n"
    "by an earlier one. Raises TypeError for anything else, ValueError for a read-only array.");

PyObject *
py_poison(PyObject *module, PyObject *object)
{
    return fill(module, object, POISON);
}

const char clear_doc[] =
    PyDoc_STR("clear($module, x, /)\n--\n\n"
              "Makes every byte 0, as poison does with another one: for rungs that add to what their output holds.");

PyObject *
py_clear(PyObject *module, PyObject *object)
{
    return fill(module, object, 0);
}
