/* The probes of csrc/limits/ from Python: what the device, the link and the host beside them can do at best. */
#include <stddef.h>
#include <string.h>

#include "device.h"
#include "errors.h"
#include "methods.h"
#include "probes.h"
#include "threads.h"

enum { ROUNDS = 7 }; /* of the probes whose rounds nobody chooses */

struct probe_arguments {
    int device;
    Py_ssize_t bytes;
    int rounds;
};

static int
parse_probe(PyObject *arguments, PyObject *keywords, const char *format, struct probe_arguments *parsed)
{
    static char *names[] = {"device", "nbytes", "rounds", NULL};
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, format, names, &parsed->device, &parsed->bytes,
                                     &parsed->rounds))
        return -1;
    if (parsed->device >= 0 && parsed->bytes > 0 && parsed->rounds > 0)
        return 0;
    PyErr_SetString(PyExc_ValueError, "device must be at least 0, nbytes and rounds at least 1");
    return -1;
}

/* The format is "i:NAME". */
static int
parse_device(PyObject *arguments, PyObject *keywords, const char *format, int *device)
{
    static char *names[] = {"device", NULL};
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, format, names, device))
        return -1;
    if (*device >= 0)
        return 0;
    PyErr_Format(PyExc_ValueError, "device must be at least 0, not %d", *device);
    return -1;
}

const char device_limits_doc[] = PyDoc_STR(
    "device_limits($module, device, nbytes, rounds)\n--\n\n"
    "The device memory's rates over nbytes in bytes a second, best of `rounds`: a dict of 'read' and 'write',\n"
    "of 'copy', half of whose bytes are read, and of 'l2_read' and 'l2_write' over a quarter of the L2.");

PyObject *
py_device_limits(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    struct probe_arguments probe;
    struct status status;
    struct device_facts facts;
    struct memory_rates memory, l2;
    if (parse_probe(arguments, keywords, "ini:device_limits", &probe) < 0)
        return NULL;
    PyThreadState *released = PyEval_SaveThread();
    int failed = device_facts(probe.device, &facts, &status);
    if (!failed)
        failed = limits_device(probe.device, (size_t)probe.bytes, probe.rounds, &memory, &status);
    if (!failed)
        failed = limits_l2(probe.device, facts.l2 / 4, probe.rounds, &l2, &status);
    PyEval_RestoreThread(released);
    if (failed)
        return status_raise(PyModule_GetState(module), &status);
    return Py_BuildValue("{s:d,s:d,s:d,s:d,s:d}", "read", memory.read, "write", memory.write, "copy", memory.copy,
                         "l2_read", l2.read, "l2_write", l2.write);
}

const char link_limits_doc[] = PyDoc_STR(
    "link_limits($module, device, nbytes, rounds)\n--\n\n"
    "The rates of copies of nbytes between page-locked host memory and the device in bytes a second, best of\n"
    "`rounds`: a dict of 'to_device', 'to_host' and 'both' at once in sum. Beside them seconds of the host: 'copy', of "
    "a\n"
    "copy of a few bytes that it waits for, 'queued_copy', of queueing one, 'stream', of making and destroying a "
    "stream.");

PyObject *
py_link_limits(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    struct probe_arguments probe;
    struct status status;
    struct link_limits link;
    if (parse_probe(arguments, keywords, "ini:link_limits", &probe) < 0)
        return NULL;
    PyThreadState *released = PyEval_SaveThread();
    int failed = limits_link(probe.device, (size_t)probe.bytes, probe.rounds, &link, &status);
    PyEval_RestoreThread(released);
    if (failed)
        return status_raise(PyModule_GetState(module), &status);
    return Py_BuildValue("{s:d,s:d,s:d,s:d,s:d,s:d}", "to_device", link.to_device, "to_host", link.to_host, "both",
                         link.both, "copy", link.copy, "queued_copy", link.queued_copy, "stream", link.stream);
}

const char device_latency_doc[] = PyDoc_STR(
    "device_latency($module, device)\n--\n\n"
    "Seconds of one load that the next one waits for, a dict: 'l1', 'l2' and 'dram' by where it is found; 'page', in\n"
    "the L2 but in a page that was not used for long; 'stream', of a round of a block that reads two arrays side by\n"
    "side from DRAM, a word a thread; and\n"
    "'atomic', seconds of one atomic addition to an address that a block's threads all add to.");

PyObject *
py_device_latency(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    int device;
    struct status status;
    struct memory_latency latency;
    if (parse_device(arguments, keywords, "i:device_latency", &device) < 0)
        return NULL;
    PyThreadState *released = PyEval_SaveThread();
    int failed = limits_latency(device, ROUNDS, &latency, &status);
    PyEval_RestoreThread(released);
    if (failed)
        return status_raise(PyModule_GetState(module), &status);
    return Py_BuildValue("{s:d,s:d,s:d,s:d,s:d,s:d}", "l1", latency.l1, "l2", latency.l2, "page", latency.page, "dram",
                         latency.dram, "stream", latency.stream, "atomic", latency.atomic);
}

/* A list of the figure at that offset of each of `count` structs of `stride` bytes, up to the first below 0. */
static PyObject *
list_of(const void *first, size_t stride, size_t offset, int count)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < count; i++) {
        double value;
        memcpy(&value, (const char *)first + (size_t)i * stride + offset, sizeof value);
        if (value < 0)
            break;
        PyObject *number = PyFloat_FromDouble(value);
        if (!number || PyList_Append(list, number) < 0)
            Py_CLEAR(list);
        Py_XDECREF(number);
    }
    return list;
}

static PyObject *
sizes_of(const void *first, size_t stride, size_t offset, int count)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < count; i++) {
        size_t bytes;
        memcpy(&bytes, (const char *)first + (size_t)i * stride + offset, sizeof bytes);
        PyObject *number = PyLong_FromSize_t(bytes);
        if (!number || PyList_Append(list, number) < 0)
            Py_CLEAR(list);
        Py_XDECREF(number);
    }
    return list;
}

struct figure {
    const char *name;
    double value;
};

/* Adds them to the dict, which it takes and returns; NULL with it released where that fails, and where it is NULL. */
static PyObject *
add_figures(PyObject *dict, const struct figure *figures, size_t count)
{
    for (size_t i = 0; dict && i < count; i++) {
        PyObject *value = PyFloat_FromDouble(figures[i].value);
        if (!value || PyDict_SetItemString(dict, figures[i].name, value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

const char launch_limits_doc[] = PyDoc_STR(
    "launch_limits($module, device)\n--\n\n"
    "Seconds, a dict: 'kernel', an empty kernel by the clock of the device rungs; 'block', each block that an\n"
    "empty grid starts; 'turnaround', from block to block on a multiprocessor that holds one; 'queued', each further "
    "kernel of a queue; 'node', each further node of a graph; 'issued', what the host takes to queue one; 'waited',\n"
    "until one is done that nothing is ahead of; lists 'bytes' and 'fresh_node', each further node of a graph whose\n"
    "kernels move so many bytes that are in no cache; 'table', until a table of one job is written, copied and worked\n"
    "through, and 'job', for each further one. From compute capability 9.0 on also of programmatic launches: "
    "'waiting',\n"
    "each further one of a queue, 'triggering', where each lets the next begin early, 'triggering_node', in a graph,\n"
    "'triggering_block', each block of such a grid, 'programmatic_issued', what the host takes to queue one,\n"
    "and 'released', in that graph, from the end of a kernel to the work of the next.");

PyObject *
py_launch_limits(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    int device;
    struct status status;
    struct launch_limits limits;
    if (parse_device(arguments, keywords, "i:launch_limits", &device) < 0)
        return NULL;
    PyThreadState *released = PyEval_SaveThread();
    int failed = limits_launch(device, 3 * ROUNDS, &limits, &status);
    PyEval_RestoreThread(released);
    if (failed)
        return status_raise(PyModule_GetState(module), &status);
    PyObject *found = Py_BuildValue(
        "{s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:N,s:N}", "kernel", limits.kernel, "block", limits.block, "turnaround",
        limits.turnaround, "queued", limits.queued, "node", limits.node, "issued", limits.issued, "waited",
        limits.waited, "table", limits.table, "job", limits.job, "bytes",
        sizes_of(limits.fresh, sizeof *limits.fresh, offsetof(struct fresh_seconds, bytes), LIMITS_FRESH), "fresh_node",
        list_of(limits.fresh, sizeof *limits.fresh, offsetof(struct fresh_seconds, seconds), LIMITS_FRESH));
    const struct figure programmatic[] = {
        {"waiting", limits.programmatic.waiting},
        {"triggering", limits.programmatic.triggering},
        {"triggering_node", limits.programmatic.node},
        {"triggering_block", limits.programmatic.block},
        {"programmatic_issued", limits.programmatic.issued},
        {"released", limits.programmatic.released},
    };
    return limits.has_programmatic ? add_figures(found, programmatic, sizeof programmatic / sizeof *programmatic)
                                   : found;
}

/* The format is "in:NAME". */
static int
parse_most(PyObject *arguments, PyObject *keywords, const char *format, int *device, Py_ssize_t *bytes)
{
    static char *names[] = {"device", "nbytes", NULL};
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, format, names, device, bytes))
        return -1;
    if (*device >= 0 && *bytes > 0)
        return 0;
    PyErr_SetString(PyExc_ValueError, "device must be at least 0, nbytes at least 1");
    return -1;
}

const char copy_limits_doc[] =
    PyDoc_STR("copy_limits($module, device, nbytes)\n--\n\n"
              "Seconds of copies of 4 KiB, four times as much, and so on up to nbytes: a dict of lists. 'bytes' of\n"
              "each; 'to_device' and 'to_host' from and to page-locked memory, by the host's clock until cudaMemcpy\n"
              "returns; 'pageable_to_device' and 'pageable_to_host' the same of ordinary memory; 'staged_to_device'\n"
              "of ordinary memory until cudaMemcpyAsync returns; 'queued_to_device'\n"
              "and 'queued_to_host' behind another copy of the stream, by the device's clock. And a float,\n"
              "'kernel_between', what an empty kernel takes between two copies of a stream.");

PyObject *
py_copy_limits(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    int device;
    Py_ssize_t bytes;
    struct status status;
    struct copy_limits limits;
    if (parse_most(arguments, keywords, "in:copy_limits", &device, &bytes) < 0)
        return NULL;
    PyThreadState *released = PyEval_SaveThread();
    int failed = limits_copies(device, (size_t)bytes, &limits, &status);
    PyEval_RestoreThread(released);
    if (failed)
        return status_raise(PyModule_GetState(module), &status);
#define LIST(name) #name, list_of(limits.sizes, sizeof *limits.sizes, offsetof(struct copy_seconds, name), limits.count)
    return Py_BuildValue(
        "{s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:d}", "bytes",
        sizes_of(limits.sizes, sizeof *limits.sizes, offsetof(struct copy_seconds, bytes), limits.count),
        LIST(to_device), LIST(to_host), LIST(pageable_to_device), LIST(pageable_to_host), LIST(staged_to_device),
        LIST(queued_to_device), LIST(queued_to_host), "kernel_between", limits.kernel_between);
#undef LIST
}

const char allocation_limits_doc[] = PyDoc_STR(
    "allocation_limits($module, device, nbytes)\n--\n\n"
    "Seconds of the host for three arrays of 2 KiB, four times as much, and so on up to nbytes, made and\n"
    "freed: a dict of lists, 'bytes' of each, 'malloc' by cudaMalloc, 'pool' from a stream-ordered pool for a\n"
    "stream that is new, up to 64 MiB, and 'pinned', one of page-locked memory of the host, up to 4 MiB. And a\n"
    "float, 'pool_again', one from the pool for a stream that has had memory before.");

PyObject *
py_allocation_limits(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    int device;
    Py_ssize_t bytes;
    struct status status;
    struct allocation_limits limits;
    if (parse_most(arguments, keywords, "in:allocation_limits", &device, &bytes) < 0)
        return NULL;
    PyThreadState *released = PyEval_SaveThread();
    int failed = limits_allocation(device, (size_t)bytes, &limits, &status);
    PyEval_RestoreThread(released);
    if (failed)
        return status_raise(PyModule_GetState(module), &status);
#define LIST(name)                                                                                                     \
#name, list_of(limits.sizes, sizeof *limits.sizes, offsetof(struct allocation_seconds, name), limits.count)
    return Py_BuildValue(
        "{s:N,s:N,s:N,s:N,s:d}", "bytes",
        sizes_of(limits.sizes, sizeof *limits.sizes, offsetof(struct allocation_seconds, bytes), limits.count),
        LIST(malloc), LIST(pool), LIST(pinned), "pool_again", limits.pool_again);
#undef LIST
}

const char mapped_limits_doc[] = PyDoc_STR(
    "mapped_limits($module, device, nbytes)\n--\n\n"
    "Seconds of a kernel that reads two arrays of page-locked host memory and writes a third, of 4 KiB, four\n"
    "times as much, and so on up to nbytes each: a dict of lists, 'bytes' and 'merged'.");

PyObject *
py_mapped_limits(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    int device;
    Py_ssize_t bytes;
    struct status status;
    struct mapped_limits limits;
    if (parse_most(arguments, keywords, "in:mapped_limits", &device, &bytes) < 0)
        return NULL;
    PyThreadState *released = PyEval_SaveThread();
    int failed = limits_mapped(device, (size_t)bytes, &limits, &status);
    PyEval_RestoreThread(released);
    if (failed)
        return status_raise(PyModule_GetState(module), &status);
    const size_t stride = sizeof *limits.sizes;
    return Py_BuildValue("{s:N,s:N}", "bytes",
                         sizes_of(limits.sizes, stride, offsetof(struct mapped_seconds, bytes), limits.count), "merged",
                         list_of(limits.sizes, stride, offsetof(struct mapped_seconds, seconds), limits.count));
}

const char managed_limits_doc[] = PyDoc_STR(
    "managed_limits($module, device, nbytes)\n--\n\n"
    "Seconds of memory that host and device share, three arrays of 4 KiB, four times as much, and so on up to\n"
    "nbytes each: a dict of lists, 'bytes', 'touched', filled by the host, added by a kernel and copied by the\n"
    "host, and 'made', made and freed. They are empty where the device has no such memory.");

PyObject *
py_managed_limits(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    int device;
    Py_ssize_t bytes;
    struct status status;
    struct managed_limits limits;
    if (parse_most(arguments, keywords, "in:managed_limits", &device, &bytes) < 0)
        return NULL;
    PyThreadState *released = PyEval_SaveThread();
    int failed = limits_managed(device, (size_t)bytes, &limits, &status);
    PyEval_RestoreThread(released);
    if (failed)
        return status_raise(PyModule_GetState(module), &status);
    const size_t stride = sizeof *limits.sizes;
    return Py_BuildValue(
        "{s:N,s:N,s:N}", "bytes", sizes_of(limits.sizes, stride, offsetof(struct managed_seconds, bytes), limits.count),
        "touched", list_of(limits.sizes, stride, offsetof(struct managed_seconds, touched), limits.count), "made",
        list_of(limits.sizes, stride, offsetof(struct managed_seconds, made), limits.count));
}

const char crew_limits_doc[] = PyDoc_STR(
    "crew_limits($module, device, nbytes)\n--\n\n"
    "What the threads that an addition may use do together, a dict: 'threads', how many; 'wake', seconds until\n"
    "they have answered after a rest, 'wake_one', until one has; 'copy_one' and 'copy_all', bytes a second that one of "
    "them and all\n"
    "copy, nbytes in all, into page-locked memory that stays in the cache; 'call_one' and 'call_all', seconds\n"
    "of a call that queues a copy or a kernel, when one of them queues and when all do.");

PyObject *
py_crew_limits(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    int device;
    Py_ssize_t bytes;
    struct status status;
    struct crew_limits limits;
    if (parse_most(arguments, keywords, "in:crew_limits", &device, &bytes) < 0)
        return NULL;
    const int threads = threads_available();
    PyThreadState *released = PyEval_SaveThread();
    int failed = limits_crew(device, threads, (size_t)bytes, &limits, &status);
    PyEval_RestoreThread(released);
    if (failed)
        return status_raise(PyModule_GetState(module), &status);
    return Py_BuildValue("{s:i,s:d,s:d,s:d,s:d,s:d,s:d}", "threads", threads, "wake", limits.wake, "wake_one",
                         limits.wake_one, "copy_one", limits.copy_one, "copy_all", limits.copy_all, "call_one",
                         limits.call_one, "call_all", limits.call_all);
}
