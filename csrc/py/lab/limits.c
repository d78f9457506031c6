/* The probes of csrc/lab/limits/ from Python: what the device, the link and the host beside them can do at best. */
#include "gpu/device.h"
#include "host/threads.h"
#include "py/base/methods.h"
#include "py/lab/probe_call.h"

enum { ROUNDS = 7 }; /* of the probes whose rounds nobody chooses */

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
                                       FIGURE("both", link.both), FIGURE("copy", link.copy),
                                       FIGURE("queued_copy", link.queued_copy), FIGURE("stream", link.stream), END},
};

const char link_limits_doc[] = PyDoc_STR(
    "link_limits($module, device, nbytes, rounds)\n--\n\n"
    "The rates of copies of nbytes between page-locked host memory and the device in bytes a second, best of\n"
    "`rounds`: a dict of 'to_device', 'to_host' and 'both' at once in sum. Beside them seconds of the host:\n"
    "'copy', of a copy of a few bytes that it waits for, 'queued_copy', of queueing one, 'stream', of making\n"
    "and destroying a stream.");

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
    .most = LIMITS_FRESH,
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

static int
measure_copies(const struct request *request, union found *found, struct status *status)
{
    return limits_copies(request->device, (size_t)request->bytes, &found->copies, status);
}

static const struct probe copies_probe = {
    .format = "in:copy_limits",
    .measure = measure_copies,
    .figures = (const struct figure[]){FIGURE("kernel_between", copies.kernel_between), END},
    .columns =
        (const struct figure[]){COLUMN("to_device", copy_seconds, to_device), COLUMN("to_host", copy_seconds, to_host),
                                COLUMN("pageable_to_device", copy_seconds, pageable_to_device),
                                COLUMN("pageable_to_host", copy_seconds, pageable_to_host),
                                COLUMN("staged_to_device", copy_seconds, staged_to_device),
                                COLUMN("queued_to_device", copy_seconds, queued_to_device),
                                COLUMN("queued_to_host", copy_seconds, queued_to_host), END},
    .array = offsetof(union found, copies.sizes),
    .stride = sizeof(struct copy_seconds),
    .count = offsetof(union found, copies.count),
};

const char copy_limits_doc[] = PyDoc_STR(
    "copy_limits($module, device, nbytes)\n--\n\n"
    "Seconds of copies of 4 KiB, four times as much, and so on up to nbytes: a dict of lists. 'bytes' of each;\n"
    "'to_device' and 'to_host' from and to page-locked memory, by the host's clock until cudaMemcpy returns;\n"
    "'pageable_to_device' and 'pageable_to_host' the same of ordinary memory; 'staged_to_device' of ordinary\n"
    "memory until cudaMemcpyAsync returns; 'queued_to_device' and 'queued_to_host' behind another copy of the\n"
    "stream, by the device's clock. And a float, 'kernel_between', what an empty kernel takes between two\n"
    "copies of a stream.");

PyObject *
py_copy_limits(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    return probe_run(module, arguments, keywords, &copies_probe);
}

static int
measure_allocation(const struct request *request, union found *found, struct status *status)
{
    return limits_allocation(request->device, (size_t)request->bytes, &found->allocation, status);
}

static const struct probe allocation_probe = {
    .format = "in:allocation_limits",
    .measure = measure_allocation,
    .figures = (const struct figure[]){FIGURE("pool_again", allocation.pool_again), END},
    .columns =
        (const struct figure[]){COLUMN("malloc", allocation_seconds, malloc), COLUMN("pool", allocation_seconds, pool),
                                COLUMN("pinned", allocation_seconds, pinned), END},
    .array = offsetof(union found, allocation.sizes),
    .stride = sizeof(struct allocation_seconds),
    .count = offsetof(union found, allocation.count),
};

const char allocation_limits_doc[] = PyDoc_STR(
    "allocation_limits($module, device, nbytes)\n--\n\n"
    "Seconds of the host for three arrays of 2 KiB, four times as much, and so on up to nbytes, made and\n"
    "freed: a dict of lists, 'bytes' of each, 'malloc' by cudaMalloc, 'pool' from a stream-ordered pool for a\n"
    "stream that is new, up to 64 MiB, and 'pinned', one of page-locked memory of the host, up to 4 MiB. And a\n"
    "float, 'pool_again', one from the pool for a stream that has had memory before.");

PyObject *
py_allocation_limits(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    return probe_run(module, arguments, keywords, &allocation_probe);
}

static int
measure_mapped(const struct request *request, union found *found, struct status *status)
{
    return limits_mapped(request->device, (size_t)request->bytes, &found->mapped, status);
}

static const struct probe mapped_probe = {
    .format = "in:mapped_limits",
    .measure = measure_mapped,
    .columns = (const struct figure[]){COLUMN("merged", mapped_seconds, seconds), END},
    .array = offsetof(union found, mapped.sizes),
    .stride = sizeof(struct mapped_seconds),
    .count = offsetof(union found, mapped.count),
};

const char mapped_limits_doc[] = PyDoc_STR(
    "mapped_limits($module, device, nbytes)\n--\n\n"
    "Seconds of a kernel that reads two arrays of page-locked host memory and writes a third, of 4 KiB, four\n"
    "times as much, and so on up to nbytes each: a dict of lists, 'bytes' and 'merged'.");

PyObject *
py_mapped_limits(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    return probe_run(module, arguments, keywords, &mapped_probe);
}

static int
measure_managed(const struct request *request, union found *found, struct status *status)
{
    return limits_managed(request->device, (size_t)request->bytes, &found->managed, status);
}

static const struct probe managed_probe = {
    .format = "in:managed_limits",
    .measure = measure_managed,
    .columns = (const struct figure[]){COLUMN("touched", managed_seconds, touched),
                                       COLUMN("made", managed_seconds, made), END},
    .array = offsetof(union found, managed.sizes),
    .stride = sizeof(struct managed_seconds),
    .count = offsetof(union found, managed.count),
};

const char managed_limits_doc[] = PyDoc_STR(
    "managed_limits($module, device, nbytes)\n--\n\n"
    "Seconds of memory that host and device share, three arrays of 4 KiB, four times as much, and so on up to\n"
    "nbytes each: a dict of lists, 'bytes', 'touched', filled by the host, added by a kernel and copied by the\n"
    "host, and 'made', made and freed. They are empty where the device has no such memory.");

PyObject *
py_managed_limits(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    return probe_run(module, arguments, keywords, &managed_probe);
}

static int
measure_crew(const struct request *request, union found *found, struct status *status)
{
    return limits_thread_probe(request->device, threads_available(), (size_t)request->bytes, &found->thread_probe,
                               status);
}

static const struct probe crew_probe = {
    .format = "in:thread_probe_limits",
    .measure = measure_crew,
    .figures =
        (const struct figure[]){FIGURE("wake", thread_probe.wake), FIGURE("wake_one", thread_probe.wake_one),
                                FIGURE("copy_one", thread_probe.copy_one), FIGURE("copy_all", thread_probe.copy_all),
                                FIGURE("call_one", thread_probe.call_one), FIGURE("call_all", thread_probe.call_all),
                                END},
};

const char thread_probe_limits_doc[] = PyDoc_STR(
    "thread_probe_limits($module, device, nbytes)\n--\n\n"
    "What the threads that an addition may use do together, a dict: 'threads', how many; 'wake', seconds until\n"
    "they have answered after a rest, 'wake_one', until one has; 'copy_one' and 'copy_all', bytes a second\n"
    "that one of them and all copy, nbytes in all, into page-locked memory that stays in the cache; 'call_one'\n"
    "and 'call_all', seconds of a call that queues a copy or a kernel, when one of them queues and when all\n"
    "do.");

PyObject *
py_thread_probe_limits(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    PyObject *dict = probe_run(module, arguments, keywords, &crew_probe);
    return dict ? probe_add(dict, "threads", PyLong_FromLong(threads_available())) : NULL;
}
