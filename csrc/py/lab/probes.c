/* The probes of csrc/lab/limits from Python, memory tests, and the ways between GPUs. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/util.h"
#include "gpu/device.h"
#include "host/schedule.h"
#include "lab/base/probes.h"
#include "py/base/methods.h"
#include "py/base/python.h"
#include "py/lab/rung_arguments.h"

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
py_wake_limits(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    const int threads = threads_available();
    struct wake_limits found;
    PyThreadState *released = PyEval_SaveThread();
    limits_wake(threads, &found);
    PyEval_RestoreThread(released);
    return Py_BuildValue("{s:i,s:d,s:d}", "threads", threads, "wake", found.wake, "wake_one", found.wake_one);
}

static const char *const kind_name[PATTERN_KINDS] = {
    [PATTERN_ADDRESS] = "address",   [PATTERN_INVERSE] = "inverse", [PATTERN_ONE] = "walking one",
    [PATTERN_ZERO] = "walking zero", [PATTERN_RANDOM] = "random",
};

/* Memory of a memory test. */
struct tested {
    struct operand operand;     /* borrows the array's memory */
    struct pattern_words words; /* the first word's place is its address, in words */
    double seconds;
};

static int
kind_from(const char *name, enum pattern_kind *kind)
{
    for (int i = 0; i < PATTERN_KINDS; i++)
        if (strcmp(name, kind_name[i]) == 0) {
            *kind = (enum pattern_kind)i;
            return 0;
        }
    return refuse(PyExc_ValueError,
                  "unknown pattern '%s': it is 'address', 'inverse', 'walking one', 'walking zero' or 'random'", name);
}

/* (x, pattern, seed). Returns 0, or -1 with an exception set. */
static int
tested_from(PyObject *module, PyObject *arguments, const char *format, struct tested *tested)
{
    PyObject *array;
    const char *name;
    unsigned long long seed;
    if (!PyArg_ParseTuple(arguments, format, &array, &name, &seed) ||
        rung_operand(PyModule_GetState(module), array, "x", &tested->operand) < 0 ||
        kind_from(name, &tested->words.pattern.kind) < 0)
        return -1;
    const struct operand *operand = &tested->operand;
    const size_t bytes = operand->size * dtype_table[operand->dtype].itemsize;
    if (bytes == 0 || bytes % sizeof(uint64_t) || (uintptr_t)operand->data % sizeof(uint64_t))
        return refuse(PyExc_ValueError, "x has %zu bytes; a pattern takes whole words of 8 bytes, aligned to them",
                      bytes);
    tested->words.memory = operand->data;
    tested->words.count = bytes / sizeof(uint64_t);
    tested->words.pattern.seed = seed;
    tested->words.pattern.first = (uintptr_t)operand->data / sizeof(uint64_t);
    return 0;
}

/* Writes where `found` is NULL, else checks. Returns 0, or -1 with an exception set. */
static int
run_test(PyObject *module, struct tested *tested, struct pattern_found *found)
{
    const struct operand *x = &tested->operand;
    const int threads = threads_available();
    struct status status;
    int failed = 0;
    PyThreadState *released = PyEval_SaveThread();
    const double begin = now_seconds();
    if (x->place == PLACE_DEVICE) {
        failed = pattern_device(x->device, x->stream, &tested->words, found, &tested->seconds, &status);
    } else {
        pattern_host(&tested->words, threads, found);
        tested->seconds = now_seconds() - begin;
    }
    PyEval_RestoreThread(released);
    if (failed)
        status_raise(PyModule_GetState(module), &status);
    return failed;
}

PyObject *
py_pattern_write(PyObject *module, PyObject *arguments)
{
    struct tested tested;
    if (tested_from(module, arguments, "OsK:pattern_write", &tested) < 0)
        return NULL;
    if (!tested.operand.writable)
        return PyErr_Format(PyExc_ValueError, "x is read-only");
    return run_test(module, &tested, NULL) < 0 ? NULL : PyFloat_FromDouble(tested.seconds);
}

/* A list of (index, expected, found). */
static PyObject *
wrong_words(const struct pattern_found *found, struct pattern pattern)
{
    const unsigned long long kept = found->count < PATTERN_KEPT ? found->count : PATTERN_KEPT;
    PyObject *list = PyList_New(0);
    for (unsigned long long i = 0; list && i < kept; i++) {
        const struct pattern_wrong *wrong = &found->wrong[i];
        list = list_with(list, Py_BuildValue("(KKK)", (unsigned long long)wrong->index,
                                             (unsigned long long)pattern_word(pattern, wrong->index),
                                             (unsigned long long)wrong->found));
    }
    if (list && PyList_Sort(list) < 0)
        Py_CLEAR(list);
    return list;
}

PyObject *
py_pattern_check(PyObject *module, PyObject *arguments)
{
    struct tested tested;
    struct pattern_found found;
    if (tested_from(module, arguments, "OsK:pattern_check", &tested) < 0 || run_test(module, &tested, &found) < 0)
        return NULL;
    return Py_BuildValue("(dKKN)", tested.seconds, found.count, (unsigned long long)(uintptr_t)tested.words.memory,
                         wrong_words(&found, tested.words.pattern));
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

static PyObject *
ways_dict(const struct peer_limits *limits)
{
    static const char *const way_name[PEER_WAYS] = {"copy", "read", "write"};
    PyObject *ways = PyDict_New();
    for (int i = 0; ways && i < (limits->access ? PEER_WAYS : PEER_READ); i++) {
        const struct pattern sent = {.kind = PATTERN_ADDRESS, .first = (uint64_t)i << 40};
        ways = dict_with(ways, way_name[i],
                         Py_BuildValue("{s:d,s:K,s:N}", "rate", limits->way[i].rate, "wrong",
                                       limits->way[i].found.count, "words", wrong_words(&limits->way[i].found, sent)));
    }
    return ways;
}

PyObject *
py_peer_limits(PyObject *module, PyObject *arguments)
{
    int source, target, rounds;
    Py_ssize_t bytes;
    struct peer_limits limits;
    struct status status;
    if (!PyArg_ParseTuple(arguments, "iini:peer_limits", &source, &target, &bytes, &rounds))
        return NULL;
    if (source < 0 || target < 0 || source == target || bytes < 16 || bytes % 16 || rounds < 1)
        return PyErr_Format(PyExc_ValueError,
                            "source %d and target %d must be two devices, nbytes (%zd) a multiple of 16, and rounds "
                            "(%d) at least 1",
                            source, target, bytes, rounds);
    if (WITHOUT_GIL(limits_peers(source, target, (size_t)bytes, rounds, &limits, &status)) < 0)
        return status_raise(PyModule_GetState(module), &status);
    return Py_BuildValue("{s:O,s:O,s:i,s:N}", "access", limits.access ? Py_True : Py_False, "atomics",
                         limits.atomics ? Py_True : Py_False, "rank", limits.rank, "ways", ways_dict(&limits));
}
