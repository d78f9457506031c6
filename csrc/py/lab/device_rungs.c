/* What only the rungs of a device have: what a launch takes, and where the time of a rung goes. */
#include <string.h>

#include "gpu/device.h"
#include "lab/ladder/device_rung.h"
#include "lab/ladder/latency.h"
#include "lab/ladder/timeline.h"
#include "py/base/methods.h"
#include "py/base/python.h"
#include "py/lab/rung_arguments.h"

static PyObject *
triple(const unsigned xyz[3])
{
    return Py_BuildValue("(III)", xyz[0], xyz[1], xyz[2]);
}

/* The dtype of that name, or NULL with a TypeError. */
static const struct dtype_row *
dtype_row_named(const char *name)
{
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        if (strcmp(dtype_table[dtype].name, name) == 0)
            return &dtype_table[dtype];
    PyErr_Format(PyExc_TypeError, "%s is not a supported dtype; vecadd._core.DTYPES lists them", name);
    return NULL;
}

/* `size` as the call's number of components, or for a matrix rung as its extents. */
static int
size_from(const struct rung *rung, const struct dtype_row *dtype, PyObject *size, struct rung_call *call)
{
    if (rung->kind == RUNG_MATRIX)
        return matrix_shape_from(rung, size, call);
    const Py_ssize_t n = PyNumber_AsSsize_t(size, PyExc_OverflowError);
    if (n == -1 && PyErr_Occurred())
        return -1;
    if (n < 0 || (size_t)n > PY_SSIZE_T_MAX / dtype->itemsize)
        return refuse(PyExc_ValueError, "n must be a number of elements that fit in memory, not %zd", n);
    call->n = (size_t)n * dtype->components;
    return 0;
}

static int
check_subject(const struct rung *rung, const struct dtype_row *dtype)
{
    if (!rung->launch)
        PyErr_Format(PyExc_ValueError, "rung %s is a %s rung, and only a device or matrix rung is a kernel to look at",
                     rung->name, rung_kind_name[rung->kind]);
    else if (!rung_takes(rung, (enum dtype)(dtype - dtype_table)))
        PyErr_Format(PyExc_TypeError, "rung %s does not take %s", rung->name, dtype->name);
    else
        return 0;
    return -1;
}

PyObject *
py_rung_facts(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"", "", "", "block", "params", "device", NULL};
    const char *name, *dtype_name;
    PyObject *size;
    int block = 0, device = 0;
    PyObject *params = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "ssO|$iO!i:rung_facts", names, &name, &dtype_name, &size,
                                     &block, &PyDict_Type, &params, &device))
        return NULL;
    const struct rung *rung = rung_from_name(name);
    const struct dtype_row *dtype = rung ? dtype_row_named(dtype_name) : NULL;
    struct rung_call call = {.component = dtype ? dtype->component : 0, .device = device};
    if (!dtype || check_subject(rung, dtype) < 0 || size_from(rung, dtype, size, &call) < 0 ||
        rung_choices_from(rung, block, params, &call) < 0)
        return NULL;

    struct rung_facts facts;
    struct status status;
    if (WITHOUT_GIL(device_check_ordinal(device, &status) < 0 || rung_facts(rung, &call, &facts, &status) < 0))
        return status_raise(PyModule_GetState(module), &status);
    const bool queued = facts.launch.launches > 0;
    /* An addition to the contents of c loads them too; the row's number is that of its usual parameters. */
    const int loads =
        (int)rung->loads_in_flight + (rung_leaves(rung, call.params) == SUM_ADDED) - (rung->sum == SUM_ADDED);
    return Py_BuildValue("{s:i,s:n,s:n,s:n,s:N,s:N,s:I,s:i,s:d,s:d,s:i,s:I}", "registers", facts.registers,
                         "static_shared", (Py_ssize_t)facts.static_shared, "dynamic_shared",
                         (Py_ssize_t)facts.launch.shared, "local", (Py_ssize_t)facts.local, "grid",
                         triple(facts.launch.grid), "block", triple(facts.launch.block), "launches",
                         facts.launch.launches, "active_blocks", facts.active_blocks, "occupancy", facts.occupancy,
                         "waves", facts.waves, "loads_in_flight", queued ? loads : 0, "bytes_per_load",
                         queued ? rung_bytes_per_load(rung, dtype->component) : 0);
}

/* Parses (name, a, b, out, *, params) of a function that `format` names and that is for rungs of one kind; `why` ends
 * the error of a rung of another. Returns 0, or -1 with an exception set. */
static int
parse_of_kind(PyObject *module, PyObject *arguments, PyObject *keywords, const char *format, enum rung_kind kind,
              const char *why, struct rung_arguments *given)
{
    static char *names[] = {"", "", "", "", "params", NULL};
    PyObject *objects[ROLE_COUNT], *params = NULL;
    const char *name;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, format, names, &name, &objects[ROLE_A], &objects[ROLE_B],
                                     &objects[ROLE_OUT], &PyDict_Type, &params))
        return -1;
    const struct rung *rung = rung_from_name(name);
    if (!rung)
        return -1;
    if (rung->kind != kind)
        return refuse(PyExc_ValueError, "%s is a %s rung%s", name, rung_kind_name[rung->kind], why);
    return rung_arguments_from(PyModule_GetState(module), name, objects, 0, params, given);
}

static PyObject *
stages_dict(const struct latency_stages *stages)
{
    if (!stages->graph)
        return Py_BuildValue("{s:d,s:d}", "issue", stages->issue, "total", stages->total);
    return Py_BuildValue("{s:d,s:d,s:d,s:d,s:d,s:d}", "issue", stages->issue, "total", stages->total, "capture",
                         stages->capture, "instantiate", stages->instantiate, "launch", stages->total, "destroy",
                         stages->destroy);
}

PyObject *
py_latency_stages(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    struct rung_arguments given;
    struct status status;
    struct latency_stages stages;
    if (parse_of_kind(module, arguments, keywords, "sOOO|$O!:latency_stages", RUNG_LATENCY,
                      ": stages are those of the latency rungs, which vecadd.ladder.names('latency') lists",
                      &given) < 0)
        return NULL;
    given.call.stages = &stages;
    const int failed =
        WITHOUT_GIL(rung_arguments_join(&given, &status) < 0 || given.rung->run(given.rung, &given.call, &status) < 0);
    return failed ? status_raise(PyModule_GetState(module), &status) : stages_dict(&stages);
}

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
    struct rung_arguments given;
    struct status status;
    if (parse_of_kind(module, arguments, keywords, "sOOO|$O!:timeline", RUNG_TRANSFER,
                      "; a timeline is of a transfer rung", &given) < 0)
        return NULL;
    struct timeline *timeline = given.call.timeline = timeline_new();
    if (!timeline)
        return PyErr_NoMemory();
    const int failed = WITHOUT_GIL(given.rung->run(given.rung, &given.call, &status));
    PyObject *list = failed ? status_raise(PyModule_GetState(module), &status) : list_of(timeline);
    timeline_free(timeline);
    return list;
}
