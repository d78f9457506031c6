/* The probes of csrc/lab/limits from Python, memory tests, and the ways between GPUs. */
#include <stddef.h>
#include <string.h>

#include "base/now.h"
#include "gpu/device.h"
#include "host/threads.h"
#include "lab/base/probes.h"
#include "py/base/errors.h"
#include "py/base/methods.h"
#include "py/base/python.h"
#include "py/lab/rung_arguments.h"

/* A probe's arguments; 1 for those that it does not take. */
struct request {
    int device;
    Py_ssize_t bytes;
    int rounds;
};

union found {
    struct {
        struct memory_rates memory, l2;
    } device;
    struct link_limits link;
    struct memory_latency latency;
    struct loaded_latency loaded[LIMITS_LOADED];
    struct launch_limits launch;
};

/* A double of a struct, and its name in Python. An array of figures ends with {0}. */
struct figure {
    const char *name;
    size_t offset;
};

struct probe {
    const char *format; /* "i:NAME" for the device alone, "ini:NAME" with nbytes and rounds */
    int (*measure)(const struct request *request, union found *found, struct status *status);
    const struct figure *figures; /* of `found`; NULL: none */

    /* Figures of an array of `count` elements in `found`, given as a list each; NULL: none. Each element begins with
     * its bytes. */
    const struct figure *columns;
    size_t array, stride;
    int count;
};

/* Makes a probe's request from its arguments. Returns 0, or -1 with an exception set. */
static int
parse(PyObject *arguments, PyObject *keywords, const char *format, struct request *request)
{
    static char *just_device[] = {"device", NULL}, *all[] = {"device", "nbytes", "rounds", NULL};
    *request = (struct request){.bytes = 1, .rounds = 1};
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, format, format[1] == ':' ? just_device : all,
                                     &request->device, &request->bytes, &request->rounds))
        return -1;
    if (request->device >= 0 && request->bytes > 0 && request->rounds > 0)
        return 0;
    if (request->device < 0)
        PyErr_Format(PyExc_ValueError, "device must be at least 0, not %d", request->device);
    else
        PyErr_Format(PyExc_ValueError, "%s must be at least 1, not %zd", request->bytes < 1 ? "nbytes" : "rounds",
                     request->bytes < 1 ? request->bytes : (Py_ssize_t)request->rounds);
    return -1;
}

/* Runs the probe. Returns 0, or -1 with an exception set. */
static int
probe_measure(PyObject *module, PyObject *arguments, PyObject *keywords, const struct probe *probe, union found *found)
{
    struct request request;
    struct status status;
    if (parse(arguments, keywords, probe->format, &request) < 0)
        return -1;
    PyThreadState *released = PyEval_SaveThread();
    const int failed = probe->measure(&request, found, &status);
    PyEval_RestoreThread(released);
    if (failed)
        status_raise(PyModule_GetState(module), &status);
    return failed;
}

/* Sets dict[name]. Takes the dict and the value, either NULL after an error; returns the dict, or NULL. */
static PyObject *
add(PyObject *dict, const char *name, PyObject *value)
{
    if (dict && (!value || PyDict_SetItemString(dict, name, value) < 0))
        Py_CLEAR(dict);
    Py_XDECREF(value);
    return dict;
}

static double
figure_of(const void *from, const struct figure *figure)
{
    double value;
    memcpy(&value, (const char *)from + figure->offset, sizeof value);
    return value;
}

/* Adds figures of `from` to the dict, and returns it. On failure releases it and returns NULL with an exception set; a
 * dict of NULL stays NULL. */
static PyObject *
probe_add_figures(PyObject *dict, const struct figure *figures, const void *from)
{
    for (; dict && figures && figures->name; figures++)
        dict = add(dict, figures->name, PyFloat_FromDouble(figure_of(from, figures)));
    return dict;
}

/* add() for a list. */
static PyObject *
append(PyObject *list, PyObject *number)
{
    if (list && (!number || PyList_Append(list, number) < 0))
        Py_CLEAR(list);
    Py_XDECREF(number);
    return list;
}

static PyObject *
sizes_of(const char *array, size_t stride, int count)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < count; i++) {
        size_t bytes;
        memcpy(&bytes, array + (size_t)i * stride, sizeof bytes);
        list = append(list, PyLong_FromSize_t(bytes));
    }
    return list;
}

static PyObject *
column_of(const char *array, size_t stride, int count, const struct figure *column)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < count; i++)
        list = append(list, PyFloat_FromDouble(figure_of(array + (size_t)i * stride, column)));
    return list;
}

/* The results: the figures, and "bytes" and a list for each column. A new dict, or NULL with an exception set. */
static PyObject *
probe_dict(const struct probe *probe, const union found *found)
{
    PyObject *dict = probe_add_figures(PyDict_New(), probe->figures, found);
    if (!probe->columns)
        return dict;
    const char *array = (const char *)found + probe->array;
    if (dict)
        dict = add(dict, "bytes", sizes_of(array, probe->stride, probe->count));
    for (const struct figure *column = probe->columns; dict && column->name; column++)
        dict = add(dict, column->name, column_of(array, probe->stride, probe->count, column));
    return dict;
}

/* probe_measure, then probe_dict. */
static PyObject *
probe_run(PyObject *module, PyObject *arguments, PyObject *keywords, const struct probe *probe)
{
    union found found;
    return probe_measure(module, arguments, keywords, probe, &found) < 0 ? NULL : probe_dict(probe, &found);
}

enum { ROUNDS = 7 }; /* of probes that do not take the number as an argument */

/* clang-format off */
#define FIGURE(name, member) {name, offsetof(union found, member)}
#define COLUMN(name, type, member) {name, offsetof(struct type, member)}
#define END {0}
/* clang-format on */

static int
measure_device(const struct request *request, union found *found, struct status *status)
{
    struct device_facts facts;
    if (device_facts(request->device, &facts, status) < 0 ||
        limits_device(request->device, (size_t)request->bytes, request->rounds, &found->device.memory, status) < 0)
        return -1;
    return limits_l2(request->device, facts.l2 / 4, request->rounds, &found->device.l2, status);
}

static const struct probe device_probe = {
    .format = "ini:device_limits",
    .measure = measure_device,
    .figures = (const struct figure[]){FIGURE("read", device.memory.read), FIGURE("write", device.memory.write),
                                       FIGURE("copy", device.memory.copy), FIGURE("l2_read", device.l2.read),
                                       FIGURE("l2_write", device.l2.write), END},
};

const char device_limits_doc[] = PyDoc_STR(
    "device_limits($module, device, nbytes, rounds)\n--\n\n"
    "The device memory's rates over nbytes in bytes a second, best of `rounds`: a dict of 'read' and 'write',\n"
    "of 'copy', half of whose bytes are read, and of 'l2_read' and 'l2_write' over a quarter of the L2.");

PyObject *
py_device_limits(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    return probe_run(module, arguments, keywords, &device_probe);
}

static int
measure_link(const struct request *request, union found *found, struct status *status)
{
    return limits_link(request->device, (size_t)request->bytes, request->rounds, &found->link, status);
}

static const struct probe link_probe = {
    .format = "ini:link_limits",
    .measure = measure_link,
    .figures = (const struct figure[]){FIGURE("to_device", link.to_device), FIGURE("to_host", link.to_host),
                                       FIGURE("both", link.both), END},
};

const char link_limits_doc[] = PyDoc_STR(
    "link_limits($module, device, nbytes, rounds)\n--\n\n"
    "The rates of copies of nbytes between page-locked host memory and the device in bytes a second, best of\n"
    "`rounds`: a dict of 'to_device', 'to_host' and 'both' at once in sum.");

PyObject *
py_link_limits(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    return probe_run(module, arguments, keywords, &link_probe);
}

static int
measure_latency(const struct request *request, union found *found, struct status *status)
{
    return limits_latency(request->device, ROUNDS, &found->latency, status);
}

static const struct probe latency_probe = {
    .format = "i:device_latency",
    .measure = measure_latency,
    .figures = (const struct figure[]){FIGURE("l1", latency.l1), FIGURE("l2", latency.l2), FIGURE("page", latency.page),
                                       FIGURE("dram", latency.dram), FIGURE("stream", latency.stream),
                                       FIGURE("atomic", latency.atomic), END},
};

const char device_latency_doc[] =
    PyDoc_STR("device_latency($module, device)\n--\n\n"
              "Seconds of one load that the next one waits for, a dict: 'l1', 'l2' and 'dram' by where it is found;\n"
              "'page', in the L2 but in a page that was not used for long; 'stream', of a round of a block that reads\n"
              "two arrays side by side from DRAM, a word a thread; and 'atomic', seconds of one atomic addition to an\n"
              "address that a block's threads all add to.");

PyObject *
py_device_latency(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    return probe_run(module, arguments, keywords, &latency_probe);
}

static int
measure_loaded(const struct request *request, union found *found, struct status *status)
{
    return limits_loaded(request->device, (size_t)request->bytes, request->rounds, found->loaded, status);
}

static const struct probe loaded_probe = {
    .format = "ini:loaded_latency",
    .measure = measure_loaded,
    .columns =
        (const struct figure[]){COLUMN("seconds", loaded_latency, seconds), COLUMN("rate", loaded_latency, rate), END},
    .array = offsetof(union found, loaded),
    .stride = sizeof(struct loaded_latency),
    .count = LIMITS_LOADED,
};

const char loaded_latency_doc[] = PyDoc_STR(
    "loaded_latency($module, device, nbytes, rounds)\n--\n\n"
    "DRAM under load, over nbytes of memory, best of `rounds`: a dict of lists, 'bytes' of loads in flight on each\n"
    "multiprocessor, 'seconds' until they have all arrived, and 'rate', bytes a second of all multiprocessors. The\n"
    "last entries are 0 where a multiprocessor holds too few threads for them.");

PyObject *
py_loaded_latency(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    return probe_run(module, arguments, keywords, &loaded_probe);
}

static int
measure_launch(const struct request *request, union found *found, struct status *status)
{
    return limits_launch(request->device, 3 * ROUNDS, &found->launch, status);
}

static const struct probe launch_probe = {
    .format = "i:launch_limits",
    .measure = measure_launch,
    .figures = (const struct figure[]){FIGURE("kernel", launch.kernel), FIGURE("block", launch.block),
                                       FIGURE("turnaround", launch.turnaround), FIGURE("queued", launch.queued),
                                       FIGURE("node", launch.node), FIGURE("issued", launch.issued),
                                       FIGURE("waited", launch.waited), FIGURE("table", launch.table),
                                       FIGURE("job", launch.job), END},
    .columns = (const struct figure[]){COLUMN("fresh_node", fresh_seconds, seconds), END},
    .array = offsetof(union found, launch.fresh),
    .stride = sizeof(struct fresh_seconds),
    .count = LIMITS_FRESH,
};

const char launch_limits_doc[] = PyDoc_STR(
    "launch_limits($module, device)\n--\n\n"
    "Seconds, a dict: 'kernel', an empty kernel by the clock of the device rungs; 'block', each block that an\n"
    "empty grid starts; 'turnaround', from block to block on a multiprocessor that holds one; 'queued', each\n"
    "further kernel of a queue; 'node', each further node of a graph; 'issued', what the host takes to queue\n"
    "one; 'waited', until one is done that nothing is ahead of; lists 'bytes' and 'fresh_node', each further\n"
    "node of a graph whose kernels move so many bytes that are in no cache; 'table', until a table of one job\n"
    "is written, copied and worked through, and 'job', for each further one. From compute capability 9.0 on\n"
    "also of programmatic launches: 'waiting', each further one of a queue, 'triggering', where each lets the\n"
    "next begin early, 'triggering_node', in a graph, 'triggering_block', each block of such a grid,\n"
    "'programmatic_issued', what the host takes to queue one, and 'released', in that graph, from the end of a\n"
    "kernel to the work of the next.");

PyObject *
py_launch_limits(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    static const struct figure programmatic[] = {FIGURE("waiting", launch.programmatic.waiting),
                                                 FIGURE("triggering", launch.programmatic.triggering),
                                                 FIGURE("triggering_node", launch.programmatic.node),
                                                 FIGURE("triggering_block", launch.programmatic.block),
                                                 FIGURE("programmatic_issued", launch.programmatic.issued),
                                                 FIGURE("released", launch.programmatic.released),
                                                 END};
    union found found;
    if (probe_measure(module, arguments, keywords, &launch_probe, &found) < 0)
        return NULL;
    PyObject *dict = probe_dict(&launch_probe, &found);
    return found.launch.has_programmatic ? probe_add_figures(dict, programmatic, &found) : dict;
}

const char thread_probe_limits_doc[] = PyDoc_STR(
    "thread_probe_limits($module, /)\n--\n\n"
    "How long the threads that an addition may use take to wake, a dict: 'threads', how many; 'wake', seconds\n"
    "until they have answered after a rest, 'wake_one', until one has.");

PyObject *
py_thread_probe_limits(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    const int threads = threads_available();
    struct thread_probe_limits found;
    PyThreadState *released = PyEval_SaveThread();
    limits_thread_probe(threads, &found);
    PyEval_RestoreThread(released);
    return Py_BuildValue("{s:i,s:d,s:d}", "threads", threads, "wake", found.wake, "wake_one", found.wake_one);
}

static const char *const kind_name[PATTERN_KINDS] = {
    [PATTERN_ADDRESS] = "address",   [PATTERN_INVERSE] = "inverse", [PATTERN_ONE] = "walking one",
    [PATTERN_ZERO] = "walking zero", [PATTERN_RANDOM] = "random",
};

/* Memory that a pattern is written into or looked for in. */
struct tested {
    struct operand operand; /* borrows the array's memory */
    size_t words;
    struct pattern pattern; /* the first word's place is its address, in words */
};

static int
kind_from(const char *name, enum pattern_kind *kind)
{
    for (int i = 0; i < PATTERN_KINDS; i++)
        if (strcmp(name, kind_name[i]) == 0) {
            *kind = (enum pattern_kind)i;
            return 0;
        }
    PyErr_Format(PyExc_ValueError,
                 "there is no pattern '%s': it is 'address', 'inverse', 'walking one', 'walking zero' or 'random'",
                 name);
    return -1;
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
        kind_from(name, &tested->pattern.kind) < 0)
        return -1;
    const struct operand *operand = &tested->operand;
    const size_t bytes = operand->size * dtype_table[operand->dtype].itemsize;
    if (bytes == 0 || bytes % sizeof(uint64_t) || (uintptr_t)operand->data % sizeof(uint64_t)) {
        PyErr_Format(PyExc_ValueError, "x has %zu bytes; a pattern takes whole words of 8 bytes, aligned to them",
                     bytes);
        return -1;
    }
    tested->words = bytes / sizeof(uint64_t);
    tested->pattern.seed = seed;
    tested->pattern.first = (uintptr_t)operand->data / sizeof(uint64_t);
    return 0;
}

const char pattern_write_doc[] =
    PyDoc_STR("pattern_write($module, x, pattern, seed, /)\n--\n\n"
              "Fills x, a contiguous NumPy array or DeviceArray of whole 64-bit words, by a pattern and returns the\n"
              "seconds: 'address' writes each word's address over 8, 'inverse' its complement, 'walking one' and\n"
              "'walking zero' one bit that the seed and the address choose, 'random' a hash of both. On a device the\n"
              "seconds are the kernel's.");

PyObject *
py_pattern_write(PyObject *module, PyObject *arguments)
{
    struct tested tested;
    struct status status;
    double seconds = 0;
    int failed = 0;
    if (tested_from(module, arguments, "OsK:pattern_write", &tested) < 0)
        return NULL;
    const struct operand *x = &tested.operand;
    if (!x->writable) {
        PyErr_SetString(PyExc_ValueError, "x is read-only");
        return NULL;
    }
    const int threads = threads_available();
    PyThreadState *released = PyEval_SaveThread();
    if (x->place == PLACE_DEVICE) {
        failed = limits_pattern_write(x->device, x->stream, x->data, tested.words, &tested.pattern, &seconds, &status);
    } else {
        const double begin = now_seconds();
        pattern_host_write(x->data, tested.words, tested.pattern, threads);
        seconds = now_seconds() - begin;
    }
    PyEval_RestoreThread(released);
    return failed ? status_raise(PyModule_GetState(module), &status) : PyFloat_FromDouble(seconds);
}

/* A list of (index, expected, found). */
static PyObject *
wrong_words(const struct pattern_found *found, struct pattern pattern)
{
    const unsigned long long kept = found->count < PATTERN_KEPT ? found->count : PATTERN_KEPT;
    PyObject *list = PyList_New(0);
    for (unsigned long long i = 0; list && i < kept; i++) {
        const struct pattern_wrong *wrong = &found->wrong[i];
        PyObject *word =
            Py_BuildValue("(KKK)", (unsigned long long)wrong->index,
                          (unsigned long long)pattern_word(pattern, wrong->index), (unsigned long long)wrong->found);
        if (!word || PyList_Append(list, word) < 0)
            Py_CLEAR(list);
        Py_XDECREF(word);
    }
    if (list && PyList_Sort(list) < 0)
        Py_CLEAR(list);
    return list;
}

const char pattern_check_doc[] =
    PyDoc_STR("pattern_check($module, x, pattern, seed, /)\n--\n\n"
              "Looks for what pattern_write has left in x: a tuple of the seconds, the number of wrong words, the\n"
              "address of x, and a sorted list of up to 64 of them as (index, expected, found).");

PyObject *
py_pattern_check(PyObject *module, PyObject *arguments)
{
    struct tested tested;
    struct pattern_found found;
    struct status status;
    double seconds = 0;
    int failed = 0;
    if (tested_from(module, arguments, "OsK:pattern_check", &tested) < 0)
        return NULL;
    const struct operand *x = &tested.operand;
    const int threads = threads_available();
    PyThreadState *released = PyEval_SaveThread();
    if (x->place == PLACE_DEVICE) {
        failed = limits_pattern_check(x->device, x->stream, x->data, tested.words, &tested.pattern, &found, &seconds,
                                      &status);
    } else {
        const double begin = now_seconds();
        pattern_host_check(x->data, tested.words, tested.pattern, threads, &found);
        seconds = now_seconds() - begin;
    }
    PyEval_RestoreThread(released);
    if (failed)
        return status_raise(PyModule_GetState(module), &status);
    return Py_BuildValue("(dKKN)", seconds, found.count, (unsigned long long)(uintptr_t)x->data,
                         wrong_words(&found, tested.pattern));
}

const char device_memory_doc[] = PyDoc_STR("device_memory($module, device, /)\n--\n\n"
                                           "(left, all): bytes of a device's memory that the driver can still give,\n"
                                           "and all that it has.");

PyObject *
py_device_memory(PyObject *module, PyObject *arguments)
{
    int device;
    size_t left = 0, all = 0;
    struct status status;
    if (!PyArg_ParseTuple(arguments, "i:device_memory", &device))
        return NULL;
    PyThreadState *released = PyEval_SaveThread();
    const int failed = limits_memory(device, &left, &all, &status);
    PyEval_RestoreThread(released);
    if (failed)
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
        PyObject *way = Py_BuildValue("{s:d,s:K,s:N}", "rate", limits->way[i].rate, "wrong", limits->way[i].found.count,
                                      "words", wrong_words(&limits->way[i].found, sent));
        if (!way || PyDict_SetItemString(ways, way_name[i], way) < 0)
            Py_CLEAR(ways);
        Py_XDECREF(way);
    }
    return ways;
}

const char peer_limits_doc[] = PyDoc_STR(
    "peer_limits($module, source, target, nbytes, rounds, /)\n--\n\n"
    "nbytes of one device's memory into another's, a dict: 'access', whether each may use the other's memory,\n"
    "'atomics', whether the link has atomic operations of its own, 'rank', the driver's rank of the link, and\n"
    "'ways', a dict of 'copy', by a copy engine, and with access of 'read', by a kernel of the target, and\n"
    "'write', by one of the source. Each has its 'rate' in bytes a second, best of `rounds`, and of one pass how\n"
    "many 64-bit words were 'wrong', and up to 64 of these 'words' as (index, expected, found).");

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
    PyThreadState *released = PyEval_SaveThread();
    const int failed = limits_peers(source, target, (size_t)bytes, rounds, &limits, &status);
    PyEval_RestoreThread(released);
    if (failed)
        return status_raise(PyModule_GetState(module), &status);
    return Py_BuildValue("{s:O,s:O,s:i,s:N}", "access", limits.access ? Py_True : Py_False, "atomics",
                         limits.atomics ? Py_True : Py_False, "rank", limits.rank, "ways", ways_dict(&limits));
}
