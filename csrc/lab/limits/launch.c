/* What a launch costs before its kernel does anything. The GPU's part is timed like the device rungs, by events after
 * a kernel that keeps the stream busy until all is queued. The host's part is timed by the host's clock with nothing
 * queued ahead: the GPU then waits for the host, which rings its doorbell for each launch. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/lab/launches.h"
#include "gpu/device.h"
#include "gpu/state.h"
#include "lab/base/probes.h"
#include "lab/limits/probe.h"

enum {
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
queue_empties_on(const void *argument, cudaStream_t stream)
{
    const struct empties *empties = argument;
    cudaError_t error = cudaSuccess;
    for (unsigned i = 0; i < empties->launches && error == cudaSuccess; i++)
        error = empties->order == SERIAL
                    ? limits_empty_launch(empties->blocks, empties->threads, empties->shared, stream)
                    : limits_programmatic_launch(empties->blocks, empties->threads, empties->order == TRIGGERING,
                                                 empties->cycles, stream);
    return error;
}

static cudaError_t
queue_empties(const struct probe *probe, const void *argument)
{
    return queue_empties_on(argument, probe->stream);
}

static double
at_least_0(double seconds)
{
    return seconds > 0 ? seconds : 0;
}

/* Seconds that each of `further` blocks or kernels takes beyond the first, which take `kernel`. */
static int
measure_further(const struct probe *probe, unsigned head_start, struct empties empties, unsigned further, int rounds,
                double kernel, double *seconds, struct status *status)
{
    const struct probe_work work = {.launch = queue_empties, .argument = &empties, .head_start = head_start};
    const int result = probe_median(probe, &work, rounds, seconds, status);
    *seconds = at_least_0(*seconds - kernel) / further;
    return result;
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
    *queued = median(until_queued, rounds);
    *done = median(until_done, rounds);
    return 0;
}

static cudaError_t
launch_graph(const struct probe *probe, const void *argument)
{
    return cudaGraphLaunch(*(const cudaGraphExec_t *)argument, probe->stream);
}

/* Measures a graph of what `launches` queues, each time after `before`. */
static int
measure_graph(const struct probe *probe, graph_launches *launches, const void *context, probe_launch *before,
              int rounds, double *seconds, struct status *status)
{
    cudaGraphExec_t graph;
    if (graph_capture(&graph, launches, context, status) < 0)
        return -1;
    const struct probe_work work = {.launch = launch_graph,
                                    .argument = &graph,
                                    .before = before,
                                    .head_start = HEAD_START_QUEUED,
                                    .what = "cudaGraphLaunch"};
    const int result = probe_median(probe, &work, rounds, seconds, status);
    graph_free(graph);
    return result;
}

/* Of a graph of NODES kernels, each busy for `cycles` clock cycles. */
static int
measure_nodes(const struct probe *probe, enum order order, unsigned cycles, int rounds, double *seconds,
              struct status *status)
{
    const struct empties nodes = {order, 1, 1, 0, NODES, cycles};
    return measure_graph(probe, queue_empties_on, &nodes, NULL, rounds, seconds, status);
}

static int
measure_serial(const struct probe *probe, const struct device_facts *facts, int rounds, struct launch_seconds *limits,
               struct status *status)
{
    const int few = fewer(rounds, ROUNDS_OF_MANY), fewest = fewer(rounds, ROUNDS_OF_GRIDS);
    const unsigned lonely = (unsigned)facts->multiprocessors * GENERATIONS;
    const unsigned half =
        (unsigned)facts->shared_per_multiprocessor / 2; /* with what each block has beside: all of it */
    const struct empties one = {SERIAL, 1, 1, 0, 1, 0}, issue = {SERIAL, 1, 1, 0, ISSUED, 0};
    double issued, done, graph, *const kernel = &limits->kernel;
    if (measure_further(probe, HEAD_START, one, 1, rounds, 0, kernel, status) < 0 ||
        measure_further(probe, HEAD_START, (struct empties){SERIAL, BLOCKS, THREADS, 0, 1, 0}, BLOCKS - 1, fewest,
                        *kernel, &limits->block, status) < 0 ||
        measure_further(probe, HEAD_START, (struct empties){SERIAL, lonely, THREADS, half, 1, 0}, GENERATIONS - 1, few,
                        *kernel, &limits->turnaround, status) < 0 ||
        measure_further(probe, HEAD_START_QUEUED, (struct empties){SERIAL, 1, 1, 0, QUEUED, 0}, QUEUED - 1, few,
                        *kernel, &limits->queued, status) < 0 ||
        measure_nodes(probe, SERIAL, 0, few, &graph, status) < 0 ||
        measure_host(probe, &one, rounds, &issued, &limits->waited, status) < 0 ||
        measure_host(probe, &issue, few, &issued, &done, status) < 0)
        return -1;
    limits->node = at_least_0(graph - *kernel) / (NODES - 1);
    limits->issued = issued / ISSUED;
    return 0;
}

static int
measure_programmatic(const struct probe *probe, int rounds, struct launch_seconds *limits, struct status *status)
{
    const int few = fewer(rounds, ROUNDS_OF_MANY), fewest = fewer(rounds, ROUNDS_OF_GRIDS);
    const struct empties issue = {WAITING, 1, 1, 0, ISSUED, 0};
    const double kernel = limits->kernel;
    double graph, busy, twice, issued, done;
    if (measure_further(probe, HEAD_START_QUEUED, (struct empties){WAITING, 1, 1, 0, QUEUED, 0}, QUEUED - 1, few,
                        kernel, &limits->programmatic.waiting, status) < 0 ||
        measure_further(probe, HEAD_START_QUEUED, (struct empties){TRIGGERING, 1, 1, 0, QUEUED, 0}, QUEUED - 1, few,
                        kernel, &limits->programmatic.triggering, status) < 0 ||
        measure_further(probe, HEAD_START, (struct empties){TRIGGERING, TRIGGERING_BLOCKS, TRIGGERING_THREADS, 0, 1, 0},
                        TRIGGERING_BLOCKS - 1, fewest, kernel, &limits->programmatic.block, status) < 0 ||
        measure_nodes(probe, TRIGGERING, 0, few, &graph, status) < 0 ||
        measure_nodes(probe, TRIGGERING, BUSY, few, &busy, status) < 0 ||
        measure_nodes(probe, TRIGGERING, 2 * BUSY, few, &twice, status) < 0 ||
        measure_host(probe, &issue, few, &issued, &done, status) < 0)
        return -1;
    limits->programmatic.node = at_least_0(graph - kernel) / (NODES - 1);
    /* Busy kernels hide all that does not wait for them; 2 * busy - twice cancels the busy time itself. */
    limits->programmatic.released = at_least_0(2 * busy - twice - kernel) / (NODES - 1);
    limits->programmatic.issued = issued / ISSUED;
    return 0;
}

/* Seconds from kernel to kernel of a graph, by the bytes that each kernel moves, where no cache has its memory. */

enum { SMALLEST = 24 << 10, STEP = 4, FRESH_NODES = 64, FRESH_ROUNDS = 5 };

struct fresh {
    char *memory;
    size_t bytes; /* of a node */
    unsigned nodes;
};

static cudaError_t
queue_fresh_on(const void *context, cudaStream_t stream)
{
    const struct fresh *fresh = context;
    cudaError_t error = cudaSuccess;
    for (unsigned i = 0; i < fresh->nodes && error == cudaSuccess; i++)
        error = limits_merge_launch(fresh->memory + i * fresh->bytes, fresh->bytes, stream);
    return error;
}

/* Reads other memory, until the L2 has nothing of the nodes' memory. */
static cudaError_t
read_other_memory(const struct probe *probe, const void *argument)
{
    (void)argument;
    const size_t l2 = probe->bytes / 2;
    return limits_read_launch((char *)probe->memory + l2 / 2, l2 / 2 * 3, probe->sink, probe->stream);
}

/* The probe's memory is twice the L2. */
static int
measure_fresh(const struct probe *probe, int rounds, struct launch_seconds *limits, struct status *status)
{
    size_t bytes = SMALLEST;
    for (int i = 0; i < LIMITS_FRESH; i++, bytes *= STEP) {
        const size_t fit = probe->bytes / 4 / bytes;
        const struct fresh fresh = {probe->memory, bytes, fit < FRESH_NODES ? (unsigned)fit : FRESH_NODES};
        double seconds;
        if (measure_graph(probe, queue_fresh_on, &fresh, read_other_memory, fewer(rounds, FRESH_ROUNDS), &seconds,
                          status) < 0)
            return -1;
        limits->fresh[i].bytes = bytes;
        limits->fresh[i].seconds = fresh.nodes ? at_least_0(seconds - limits->kernel) / fresh.nodes : 0;
    }
    return 0;
}

/* What a launch over a table of jobs costs: the host writes the jobs, the driver copies them, and each block of the
 * launch looks one up. It is timed once among other work, as a batch is called: the driver's code and memory have left
 * the caches. */

enum { JOBS = 1024, JOB_THREADS = 32 };

/* The jobs' components in all; each job divides it by their number, as a caller who cuts an array does. */
static volatile uint64_t components = 1000003;

/* Host seconds for a table of `count` jobs, its allocation included, on a stream that has had none before. */
static int
table_pass(const struct probe *probe, cudaStream_t stream, unsigned count, double *seconds, struct status *status)
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
    if (pool_allocate(&probe->scope, stream, count * sizeof *jobs, &device, status) < 0)
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

/* Evicts everything from the calling core's own caches. */
static void
evict_caches(void)
{
    static char others[4 << 20]; /* twice the largest L2 of a core */
    static unsigned char value;
    memset(others, ++value, sizeof others);
    __asm__ volatile("" : : "r"(others) : "memory");
}

static int
table_on_new_stream(const struct probe *probe, unsigned count, double *seconds, struct status *status)
{
    cudaStream_t stream;
    evict_caches();
    if (CUDA_CALL(status, cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking) < 0)
        return -1;
    const int result = table_pass(probe, stream, count, seconds, status);
    device_ignore(cudaStreamDestroy(stream));
    return result;
}

/* For one job, and for each further one. */
static int
measure_table(const struct probe *probe, int rounds, double *table, double *job, struct status *status)
{
    double one[ROUNDS_MAX], many[ROUNDS_MAX];
    for (int round = -1; round < rounds; round++) {
        const int kept = round < 0 ? 0 : round;
        if (table_on_new_stream(probe, 1, &one[kept], status) < 0)
            return -1;
        if (table_on_new_stream(probe, JOBS, &many[kept], status) < 0)
            return -1;
    }
    *table = median(one, rounds);
    const double further = median(many, rounds) - *table;
    *job = further > 0 ? further / (JOBS - 1) : 0;
    return 0;
}

int
probe_launches(const struct probe_request *request, union probe_found *found, struct status *status)
{
    struct probe probe;
    struct device_facts facts;
    struct launch_seconds *limits = &found->launches;
    const int rounds = fewer(request->rounds, ROUNDS_MAX);
    *limits = (struct launch_seconds){.programmatic = {NAN, NAN, NAN, NAN, NAN, NAN}};
    if (device_facts(request->device, &facts, status) < 0)
        return -1;
    const bool programmatic = 10 * facts.cc_major + facts.cc_minor >= PROGRAMMATIC_CC;
    int result = probe_open(&probe, request->device, facts.l2 / sizeof(uint64_t) * 2 * sizeof(uint64_t), status);
    if (result == 0 && (measure_serial(&probe, &facts, rounds, limits, status) < 0 ||
                        (programmatic && measure_programmatic(&probe, rounds, limits, status) < 0) ||
                        measure_fresh(&probe, rounds, limits, status) < 0 ||
                        measure_table(&probe, rounds, &limits->table, &limits->job, status) < 0))
        result = -1;
    probe_close(&probe);
    return result;
}
