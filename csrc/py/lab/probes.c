/* The probes of a device from Python. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "lab/base/probes.h"
#include "py/base/methods.h"
#include "py/base/python.h"

/* A double of what a probe found, and its name in Python. */
struct figure {
    const char *name;
    size_t offset;
};

enum { FIGURES_MAX = 16, COLUMNS_MAX = 2 };

static const struct probe {
    const char *name;
    device_probe *measure;
    int rounds; /* 0: nbytes and rounds are arguments */
    struct figure figures[FIGURES_MAX];

    /* Figures of an array in `found`, given as a list each. Each of its elements begins with its bytes. */
    struct figure columns[COLUMNS_MAX + 1];
    size_t array, stride;
    int count;
} probes[] = {
#define FIGURE(name, member)                                                                                           \
    {                                                                                                                  \
        name, offsetof(union probe_found, member)                                                                      \
    }
#define COLUMN(name, type, member)                                                                                     \
    {                                                                                                                  \
        name, offsetof(struct type, member)                                                                            \
    }
    {
        .name = "rates",
        .measure = probe_rates,
        .figures = {FIGURE("read", rates.memory.read), FIGURE("write", rates.memory.write),
                    FIGURE("copy", rates.memory.copy), FIGURE("l2_read", rates.l2.read),
                    FIGURE("l2_write", rates.l2.write)},
    },
    {
        .name = "link",
        .measure = probe_link,
        .figures = {FIGURE("to_device", link.to_device), FIGURE("to_host", link.to_host), FIGURE("both", link.both)},
    },
    {
        .name = "latency",
        .measure = probe_latency,
        .rounds = 7,
        .figures = {FIGURE("l1", latency.l1), FIGURE("l2", latency.l2), FIGURE("page", latency.page),
                    FIGURE("dram", latency.dram), FIGURE("stream", latency.stream), FIGURE("atomic", latency.atomic)},
    },
    {
        .name = "loaded",
        .measure = probe_loaded,
        .columns = {COLUMN("seconds", loaded_latency, seconds), COLUMN("rate", loaded_latency, rate)},
        .array = offsetof(union probe_found, loaded),
        .stride = sizeof(struct loaded_latency),
        .count = LIMITS_LOADED,
    },
    {
        .name = "launches",
        .measure = probe_launches,
        .rounds = 21,
        .figures = {FIGURE("kernel", launches.kernel), FIGURE("block", launches.block),
                    FIGURE("turnaround", launches.turnaround), FIGURE("queued", launches.queued),
                    FIGURE("node", launches.node), FIGURE("issued", launches.issued), FIGURE("waited", launches.waited),
                    FIGURE("table", launches.table), FIGURE("job", launches.job),
                    FIGURE("waiting", launches.programmatic.waiting),
                    FIGURE("triggering", launches.programmatic.triggering),
                    FIGURE("triggering_node", launches.programmatic.node),
                    FIGURE("triggering_block", launches.programmatic.block),
                    FIGURE("programmatic_issued", launches.programmatic.issued),
                    FIGURE("released", launches.programmatic.released)},
        .columns = {COLUMN("fresh_node", fresh_seconds, seconds)},
        .array = offsetof(union probe_found, launches.fresh),
        .stride = sizeof(struct fresh_seconds),
        .count = LIMITS_FRESH,
    },
};

/* The probe and its request. NULL with an exception set. */
static const struct probe *
parse(PyObject *arguments, struct probe_request *request)
{
    const char *name;
    int device;
    Py_ssize_t bytes = 0;
    int rounds = 0;
    const struct probe *probe = probes, *const end = probes + sizeof probes / sizeof *probes;
    if (!PyArg_ParseTuple(arguments, "si|ni:probe", &name, &device, &bytes, &rounds))
        return NULL;
    while (probe < end && strcmp(name, probe->name) != 0)
        probe++;
    *request = (struct probe_request){device, (size_t)bytes, probe < end && probe->rounds ? probe->rounds : rounds};
    if (probe == end)
        PyErr_Format(PyExc_ValueError,
                     "no probe is called '%s': there are 'rates', 'link', 'latency', 'loaded' and 'launches'", name);
    else if (device < 0)
        PyErr_Format(PyExc_ValueError, "device must be at least 0, not %d", device);
    else if (!probe->rounds && (bytes < 1 || rounds < 1))
        PyErr_Format(PyExc_ValueError, "nbytes and rounds must be at least 1, not %zd and %d", bytes, rounds);
    else
        return probe;
    return NULL;
}

static double
figure_of(const char *from, const struct figure *figure)
{
    double value;
    memcpy(&value, from + figure->offset, sizeof value);
    return value;
}

/* A list of this figure of each element of the probe's array; of NULL their bytes. */
static PyObject *
column_of(const struct probe *probe, const char *array, const struct figure *column)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < probe->count; i++, array += probe->stride) {
        size_t bytes;
        memcpy(&bytes, array, sizeof bytes);
        list = list_with(list, column ? PyFloat_FromDouble(figure_of(array, column)) : PyLong_FromSize_t(bytes));
    }
    return list;
}

/* {figure: value, column: list}; a figure that is NaN was not measured. */
static PyObject *
probe_dict(const struct probe *probe, const union probe_found *found)
{
    PyObject *dict = PyDict_New();
    const char *from = (const char *)found;
    for (const struct figure *figure = probe->figures; dict && figure->name; figure++)
        if (!isnan(figure_of(from, figure)))
            dict = dict_with(dict, figure->name, PyFloat_FromDouble(figure_of(from, figure)));
    if (dict && probe->count)
        dict = dict_with(dict, "bytes", column_of(probe, from + probe->array, NULL));
    for (const struct figure *column = probe->columns; dict && column->name; column++)
        dict = dict_with(dict, column->name, column_of(probe, from + probe->array, column));
    return dict;
}

PyObject *
py_probe(PyObject *module, PyObject *arguments)
{
    struct probe_request request;
    union probe_found found;
    struct status status;
    const struct probe *probe = parse(arguments, &request);
    if (!probe)
        return NULL;
    const int failed = WITHOUT_GIL(probe->measure(&request, &found, &status));
    return failed ? status_raise(PyModule_GetState(module), &status) : probe_dict(probe, &found);
}

PyObject *
py_device_memory(PyObject *module, PyObject *arguments)
{
    int device;
    size_t left = 0, all = 0;
    struct status status;
    if (!PyArg_ParseTuple(arguments, "i:device_memory", &device))
        return NULL;
    if (WITHOUT_GIL(limits_memory(device, &left, &all, &status)) < 0)
        return status_raise(PyModule_GetState(module), &status);
    return Py_BuildValue("(nn)", (Py_ssize_t)left, (Py_ssize_t)all);
}
