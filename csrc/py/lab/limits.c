/* The probes of csrc/lab/limits/ from Python: the best rates of the device, the link and the host. */
#include "gpu/device.h"
#include "host/threads.h"
#include "py/base/methods.h"
#include "py/lab/probe_call.h"

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
