/* What a launch costs before its kernel does anything. The GPU's part is timed like the device rungs, by events behind
 * a kernel that keeps the stream busy until all is queued. The host's part is timed by the host's clock with nothing
 * queued ahead: the GPU then waits for the host, which rings its doorbell for each launch. */
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "cuda/lab/launches.h"
#include "gpu/device.h"
#include "lab/base/probes.h"
#include "lab/limits/probe.h"

enum {
    ROUNDS_MAX = 64,
    HEAD_START = 40000, /* cycles, 20 us: as in csrc/lab/ladder/device_rung.c */
    QUEUED = 64,
    NODES = 512,                 /* of a graph, whose own launch is then 1 % of the time */
    ROUNDS_OF_MANY = 9,          /* at most, of queues and graphs: each round averages over many kernels */
    ROUNDS_OF_GRIDS = 5,         /* at most, of grids: each round averages over many blocks */
    HEAD_START_QUEUED = 1200000, /* 0.6 ms: the host queues a launch in 4 us at most */
    BLOCKS = 1 << 15,            /* 20 us on an H200, where each starts in 0.61 ns */
    THREADS = 64,
    GENERATIONS = 32, /* of blocks that have a multiprocessor to themselves */
    ISSUED = 1000,    /* launches timed by the host's clock: a long row, as many callers make */
    PROGRAMMATIC_CC = 90,
    BUSY = 2000,                 /* cycles, 1 us: longer than the launch that runs beside it */
    TRIGGERING_BLOCKS = 1 << 13, /* 10 us */
    TRIGGERING_THREADS = 256,    /* a block that triggers starts with all of its warps, or the next may not */
};

enum order { SERIAL, WAITING, TRIGGERING }; /* WAITING and TRIGGERING are programmatic */

struct empties {
    enum order order;
    unsigned blocks, threads, shared, launches;
    unsigned cycles; /* of each kernel; programmatic launches only */
};

static cudaError_t
queue_empties(const struct probe *probe, const void *argument)
{
    const struct empties *empties = argument;
    cudaError_t error = cudaSuccess;
    for (unsigned i = 0; i < empties->launches && error == cudaSuccess; i++)
        error = empties->order == SERIAL
                    ? limits_empty_launch(empties->blocks, empties->threads, empties->shared, probe->stream)
                    : limits_programmatic_launch(empties->blocks, empties->threads, empties->order == TRIGGERING,
                                                 empties->cycles, probe->stream);
    return error;
}

/* The median of all rounds but the first. */
static int
measure(const struct probe *probe, unsigned head_start, const struct empties *empties, int rounds, double *seconds,
        struct status *status)
{
    double each[ROUNDS_MAX], first;
    if (probe_time(probe, head_start, queue_empties, empties, "cudaLaunchKernel", &first, status) < 0)
        return -1;
    for (int round = 0; round < rounds; round++)
        if (probe_time(probe, head_start, queue_empties, empties, "cudaLaunchKernel", &each[round], status) < 0)
            return -1;
    *seconds = probe_median(each, rounds);
    return 0;
}

/* Host seconds until all is queued, and until all is done: medians of all rounds but the first. */
static int
measure_host(const struct probe *probe, const struct empties *empties, int rounds, double *queued, double *done,
             struct status *status)
{
    double until_queued[ROUNDS_MAX], until_done[ROUNDS_MAX];
    for (int round = -1; round < rounds; round++) {
        const int kept = round < 0 ? 0 : round;
        const double begin = now_seconds();
        const cudaError_t error = queue_empties(probe, empties);
        until_queued[kept] = now_seconds() - begin;
        const cudaError_t waited = stream_wait(probe->stream);
        until_done[kept] = now_seconds() - begin;
        if (error != cudaSuccess || waited != cudaSuccess)
            return device_status(status, error != cudaSuccess ? error : waited, "cudaLaunchKernel");
    }
    *queued = probe_median(until_queued, rounds);
    *done = probe_median(until_done, rounds);
    return 0;
}

struct graph {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
};

static cudaError_t
launch_graph(const struct probe *probe, const void *argument)
{
    const struct graph *graph = argument;
    return cudaGraphLaunch(graph->exec, probe->stream);
}

/* The stream is no longer capturing when this returns, after an error too. */
static int
graph_open(struct graph *graph, const struct probe *probe, const struct empties *nodes, struct status *status)
{
    cudaError_t error = cudaStreamBeginCapture(probe->stream, cudaStreamCaptureModeThreadLocal);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaStreamBeginCapture");
    error = queue_empties(probe, nodes);
    const cudaError_t ended = cudaStreamEndCapture(probe->stream, &graph->graph);
    if (error == cudaSuccess)
        error = ended;
    if (error != cudaSuccess)
        return device_status(status, error, "cudaStreamEndCapture");
    error = cudaGraphInstantiate(&graph->exec, graph->graph, 0);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaGraphInstantiate");
    error = cudaGraphUpload(graph->exec, probe->stream);
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaGraphUpload");
}

static void
graph_close(const struct graph *graph)
{
    if (graph->exec)
        device_ignore(cudaGraphExecDestroy(graph->exec));
    if (graph->graph)
        device_ignore(cudaGraphDestroy(graph->graph));
}

/* The median of all rounds but the first. */
static int
measure_graph(const struct probe *probe, enum order order, unsigned cycles, int rounds, double *seconds,
              struct status *status)
{
    const struct empties nodes = {order, 1, 1, 0, NODES, cycles};
    double each[ROUNDS_MAX];
    struct graph graph = {0};
    int result = graph_open(&graph, probe, &nodes, status);
    for (int round = -1; round < rounds && result == 0; round++)
        result = probe_time(probe, HEAD_START_QUEUED, launch_graph, &graph, "cudaGraphLaunch",
                            &each[round < 0 ? 0 : round], status);
    if (result == 0)
        *seconds = probe_median(each, rounds);
    graph_close(&graph);
    return result;
}

static int
fewer(int rounds, int most)
{
    return rounds < most ? rounds : most;
}

static double
at_least_0(double seconds)
{
    return seconds > 0 ? seconds : 0;
}

static int
measure_serial(const struct probe *probe, int device, int rounds, struct launch_limits *limits, struct status *status)
{
    const int few = fewer(rounds, ROUNDS_OF_MANY), fewest = fewer(rounds, ROUNDS_OF_GRIDS);
    double blocks = 0, generations = 0, queued = 0, graph = 0, issued = 0, done;
    int multiprocessors = 0, shared = 0;
    cudaError_t error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaDeviceGetAttribute");
    const struct empties one = {SERIAL, 1, 1, 0, 1, 0}, grid = {SERIAL, BLOCKS, THREADS, 0, 1, 0},
                         many = {SERIAL, 1, 1, 0, QUEUED, 0}, issue = {SERIAL, 1, 1, 0, ISSUED, 0},
                         lonely = {SERIAL, (unsigned)multiprocessors * GENERATIONS, THREADS, (unsigned)shared / 2, 1,
                                   0};
    if (measure(probe, HEAD_START, &one, rounds, &limits->kernel, status) < 0 ||
        measure(probe, HEAD_START, &grid, fewest, &blocks, status) < 0 ||
        measure(probe, HEAD_START, &lonely, few, &generations, status) < 0 ||
        measure(probe, HEAD_START_QUEUED, &many, few, &queued, status) < 0 ||
        measure_graph(probe, SERIAL, 0, few, &graph, status) < 0 ||
        measure_host(probe, &one, rounds, &issued, &limits->waited, status) < 0 ||
        measure_host(probe, &issue, few, &issued, &done, status) < 0)
        return -1;
    limits->block = at_least_0(blocks - limits->kernel) / (BLOCKS - 1);
    limits->turnaround = at_least_0(generations - limits->kernel) / (GENERATIONS - 1);
    limits->queued = at_least_0(queued - limits->kernel) / (QUEUED - 1);
    limits->node = at_least_0(graph - limits->kernel) / (NODES - 1);
    limits->issued = issued / ISSUED;
    return 0;
}

static int
measure_programmatic(const struct probe *probe, int rounds, struct launch_limits *limits, struct status *status)
{
    const int few = fewer(rounds, ROUNDS_OF_MANY), fewest = fewer(rounds, ROUNDS_OF_GRIDS);
    double waiting = 0, triggering = 0, graph = 0, blocks = 0, issued = 0, busy = 0, twice = 0, done;
    const struct empties queue = {WAITING, 1, 1, 0, QUEUED, 0}, triggers = {TRIGGERING, 1, 1, 0, QUEUED, 0},
                         grid = {TRIGGERING, TRIGGERING_BLOCKS, TRIGGERING_THREADS, 0, 1, 0},
                         issue = {WAITING, 1, 1, 0, ISSUED, 0};
    if (measure(probe, HEAD_START_QUEUED, &queue, few, &waiting, status) < 0 ||
        measure(probe, HEAD_START_QUEUED, &triggers, few, &triggering, status) < 0 ||
        measure(probe, HEAD_START, &grid, fewest, &blocks, status) < 0 ||
        measure_graph(probe, TRIGGERING, 0, few, &graph, status) < 0 ||
        measure_graph(probe, TRIGGERING, BUSY, few, &busy, status) < 0 ||
        measure_graph(probe, TRIGGERING, 2 * BUSY, few, &twice, status) < 0 ||
        measure_host(probe, &issue, few, &issued, &done, status) < 0)
        return -1;
    limits->programmatic.waiting = at_least_0(waiting - limits->kernel) / (QUEUED - 1);
    limits->programmatic.triggering = at_least_0(triggering - limits->kernel) / (QUEUED - 1);
    limits->programmatic.node = at_least_0(graph - limits->kernel) / (NODES - 1);
    limits->programmatic.block = at_least_0(blocks - limits->kernel) / (TRIGGERING_BLOCKS - 1);
    /* Busy kernels hide all that does not wait for them; 2 * busy - twice cancels the busy time itself. */
    limits->programmatic.released = at_least_0(2 * busy - twice - limits->kernel) / (NODES - 1);
    limits->programmatic.issued = issued / ISSUED;
    return 0;
}

/* Seconds from kernel to kernel of a graph, by the bytes that each kernel moves, where no cache holds its memory. */

enum {
    SMALLEST = 24 << 10,
    STEP = 4,
    FRESH_NODES = 64,
    FRESH_ROUNDS = 5,
};

struct fresh {
    struct probe probe; /* `memory` is twice the L2 */
    size_t l2;
};

struct stretch {
    const struct fresh *fresh;
    size_t bytes; /* of a node */
    unsigned nodes;
    cudaGraphExec_t exec;
};

static cudaError_t
queue_nodes(const struct stretch *stretch)
{
    const struct probe *probe = &stretch->fresh->probe;
    cudaError_t error = cudaSuccess;
    for (unsigned i = 0; i < stretch->nodes && error == cudaSuccess; i++)
        error = limits_merge_launch((char *)probe->memory + i * stretch->bytes, stretch->bytes, probe->stream);
    return error;
}

static int
stretch_open(struct stretch *stretch, struct status *status)
{
    const cudaStream_t stream = stretch->fresh->probe.stream;
    cudaGraph_t graph = NULL;
    cudaError_t error = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaStreamBeginCapture");
    error = queue_nodes(stretch);
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    if (error == cudaSuccess)
        error = ended;
    if (error == cudaSuccess)
        error = cudaGraphInstantiate(&stretch->exec, graph, 0);
    if (graph)
        device_ignore(cudaGraphDestroy(graph));
    if (error != cudaSuccess)
        return device_status(status, error, "cudaGraphInstantiate");
    error = cudaGraphUpload(stretch->exec, stream);
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaGraphUpload");
}

static cudaError_t
launch_stretch(const struct probe *probe, const void *argument)
{
    const struct stretch *stretch = argument;
    return cudaGraphLaunch(stretch->exec, probe->stream);
}

/* Reads other memory first, until the L2 holds nothing of the nodes' memory. */
static int
stretch_time(const struct stretch *stretch, double *seconds, struct status *status)
{
    const struct fresh *fresh = stretch->fresh;
    const struct probe *probe = &fresh->probe;
    const cudaError_t error =
        limits_read_launch((char *)probe->memory + fresh->l2 / 2, fresh->l2 / 2 * 3, probe->sink, probe->stream);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaLaunchKernel");
    return probe_time(probe, HEAD_START_QUEUED, launch_stretch, stretch, "cudaGraphLaunch", seconds, status);
}

/* The median of all rounds but the first. */
static int
measure_fresh(const struct fresh *fresh, int rounds, double kernel, struct fresh_seconds *found, struct status *status)
{
    double each[FRESH_ROUNDS];
    const size_t fit = fresh->l2 / 2 / found->bytes;
    struct stretch stretch = {fresh, found->bytes, fit < FRESH_NODES ? (unsigned)fit : FRESH_NODES, NULL};
    int result = stretch_open(&stretch, status);
    for (int round = -1; round < rounds && result == 0; round++)
        result = stretch_time(&stretch, &each[round < 0 ? 0 : round], status);
    if (stretch.exec)
        device_ignore(cudaGraphExecDestroy(stretch.exec));
    if (result < 0)
        return -1;
    const double beyond = probe_median(each, rounds) - kernel;
    found->seconds = beyond > 0 && stretch.nodes > 0 ? beyond / stretch.nodes : 0;
    return 0;
}

/* Fills in `sizes`; `kernel` is what an empty kernel takes. At most 5 rounds. */
static int
limits_fresh(const struct device_scope *scope, int rounds, double kernel, struct fresh_seconds sizes[LIMITS_FRESH],
             struct status *status)
{
    struct fresh fresh = {0};
    struct device_facts facts;
    int result = -1;
    if (rounds > FRESH_ROUNDS)
        rounds = FRESH_ROUNDS;
    if (device_facts(scope->device, &facts, status) < 0)
        return -1;
    fresh.l2 = facts.l2 / sizeof(uint64_t) * sizeof(uint64_t);
    if (probe_open(&fresh.probe, scope, 2 * fresh.l2, status) < 0)
        goto done;
    size_t bytes = SMALLEST;
    for (int i = 0; i < LIMITS_FRESH; i++, bytes *= STEP) {
        sizes[i].bytes = bytes;
        if (measure_fresh(&fresh, rounds, kernel, &sizes[i], status) < 0)
            goto done;
    }
    result = 0;
done:
    probe_close(&fresh.probe);
    return result;
}

/* What a launch over a table of jobs costs: the host writes the jobs, the driver copies them, and each block of the
 * launch looks one up. It is timed once among other work, as a batch is called: the driver's code and memory have left
 * the caches. */

enum { JOBS = 1024, JOB_THREADS = 32 };

/* The jobs' components in all; each job divides it by their number, as a caller who cuts an array does. */
static volatile uint64_t components = 1000003;

/* Host seconds for a table of `count` jobs, its allocation included, on a stream that has had none before. */
static int
table_pass(const struct probe *probe, cudaStream_t stream, const struct device_scope *scope, unsigned count,
           double *seconds, struct status *status)
{
    void *device = NULL;
    int result = -1;
    const double begin = now_seconds();
    struct limits_job *const jobs = malloc(count * sizeof *jobs);
    if (!jobs)
        return status_set(status, STATUS_MEMORY, "there is no memory for a table of %u jobs", count);
    uint64_t at = 0;
    for (unsigned i = 0; i < count; i++) {
        const uint64_t length = components / count + (i < components % count);
        jobs[i] = (struct limits_job){.from = 2 * at, .to = 4 * at, .count = length};
        at += length;
    }
    if (pool_allocate(scope, stream, count * sizeof *jobs, &device, status) < 0)
        goto done;
    cudaError_t error = cudaMemcpyAsync(device, jobs, count * sizeof *jobs, cudaMemcpyHostToDevice, stream);
    if (error == cudaSuccess)
        error = limits_table_launch(device, count, JOB_THREADS, probe->sink, stream);
    const cudaError_t waited = stream_wait(stream);
    *seconds = now_seconds() - begin;
    if (error == cudaSuccess)
        error = waited;
    result = error == cudaSuccess ? 0 : device_status(status, error, "cudaMemcpyAsync");
done:
    pool_release(stream, device);
    free(jobs);
    return result;
}

static int
table_on_new_stream(const struct probe *probe, const struct device_scope *scope, unsigned count, double *seconds,
                    struct status *status)
{
    cudaStream_t stream;
    const cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaStreamCreateWithFlags");
    const int result = table_pass(probe, stream, scope, count, seconds, status);
    device_ignore(cudaStreamDestroy(stream));
    return result;
}

/* Host seconds to write and copy a table of one job, launch over it and wait, and for each further job; at most 64
 * rounds. */
static int
limits_table(const struct probe *probe, const struct device_scope *scope, int rounds, double *table, double *job,
             struct status *status)
{
    double one[ROUNDS_MAX], many[ROUNDS_MAX];
    if (rounds > ROUNDS_MAX)
        rounds = ROUNDS_MAX;
    for (int round = -1; round < rounds; round++) {
        const int kept = round < 0 ? 0 : round;
        probe_disturb();
        if (table_on_new_stream(probe, scope, 1, &one[kept], status) < 0)
            return -1;
        probe_disturb();
        if (table_on_new_stream(probe, scope, JOBS, &many[kept], status) < 0)
            return -1;
    }
    *table = probe_median(one, rounds);
    const double further = probe_median(many, rounds) - *table;
    *job = further > 0 ? further / (JOBS - 1) : 0;
    return 0;
}

int
limits_launch(int device, int rounds, struct launch_limits *limits, struct status *status)
{
    struct device_scope scope;
    if (device_enter_relaxed(&scope, device, status) < 0)
        return -1;

    int result = -1;
    struct probe probe = {0};
    struct device_facts facts;
    *limits = (struct launch_limits){0};
    if (rounds > ROUNDS_MAX)
        rounds = ROUNDS_MAX;
    if (probe_open(&probe, &scope, 0, status) < 0 || device_facts(scope.device, &facts, status) < 0)
        goto done;
    limits->has_programmatic = 10 * facts.cc_major + facts.cc_minor >= PROGRAMMATIC_CC;
    if (measure_serial(&probe, scope.device, rounds, limits, status) < 0 ||
        (limits->has_programmatic && measure_programmatic(&probe, rounds, limits, status) < 0))
        goto done;
    if (limits_fresh(&scope, rounds, limits->kernel, limits->fresh, status) == 0)
        result = limits_table(&probe, &scope, rounds, &limits->table, &limits->job, status);
done:
    probe_close(&probe);
    device_leave(&scope);
    return result;
}
