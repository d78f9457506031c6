/* What a launch costs before its kernel does anything: by the clock of the device rungs, events behind a kernel that
 * keeps the stream busy until all is queued. */
#include <cuda_runtime_api.h>
#include <time.h>

#include "device.h"
#include "kernels.h"
#include "probe.h"
#include "probes.h"

enum {
    ROUNDS_MOST = 64,
    HEAD_START = 40000, /* cycles, 20 us: as in csrc/ladder/clock.c */
    QUEUED = 64,
    NODES = 512,                 /* of a graph: what its launch costs once is 1 % of them */
    HEAD_START_QUEUED = 1200000, /* 0.6 ms: the host queues a launch in 4 us at most */
    BLOCKS = 1 << 15,            /* 20 us on an H200, where each starts in 0.61 ns */
    THREADS = 64,
    GENERATIONS = 32, /* of blocks that have a multiprocessor to themselves */
};

struct empties {
    unsigned blocks, threads, shared, launches;
    double *host; /* seconds that the host takes for them; NULL: not asked for */
};

static double
now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static cudaError_t
queue_empties(const struct probe *probe, const void *argument)
{
    const struct empties *empties = argument;
    const double begin = now();
    cudaError_t error = cudaSuccess;
    for (unsigned i = 0; i < empties->launches && error == cudaSuccess; i++)
        error = limits_empty_launch(empties->blocks, empties->threads, empties->shared, probe->stream);
    if (empties->host)
        *empties->host = now() - begin;
    return error;
}

/* The median of the rounds after a first one. */
static int
measure(const struct probe *probe, unsigned head_start, const struct empties *empties, int rounds, double *seconds,
        struct status *status)
{
    double each[ROUNDS_MOST], first;
    if (probe_time(probe, head_start, queue_empties, empties, "cudaLaunchKernel", &first, status) < 0)
        return -1;
    for (int round = 0; round < rounds; round++)
        if (probe_time(probe, head_start, queue_empties, empties, "cudaLaunchKernel", &each[round], status) < 0)
            return -1;
    *seconds = probe_median(each, rounds);
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

/* The stream captures no more when this returns, whatever it returns. */
static int
graph_open(struct graph *graph, const struct probe *probe, struct status *status)
{
    static const struct empties nodes = {1, 1, 0, NODES, NULL};
    cudaError_t error = cudaStreamBeginCapture(probe->stream, cudaStreamCaptureModeThreadLocal);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaStreamBeginCapture");
    error = queue_empties(probe, &nodes);
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
        cudaGraphExecDestroy(graph->exec);
    if (graph->graph)
        cudaGraphDestroy(graph->graph);
}

/* The median of the rounds after a first one. */
static int
measure_graph(const struct probe *probe, int rounds, double *seconds, struct status *status)
{
    double each[ROUNDS_MOST];
    struct graph graph = {0};
    int result = graph_open(&graph, probe, status);
    for (int round = -1; round < rounds && result == 0; round++)
        result = probe_time(probe, HEAD_START_QUEUED, launch_graph, &graph, "cudaGraphLaunch",
                            &each[round < 0 ? 0 : round], status);
    if (result == 0)
        *seconds = probe_median(each, rounds);
    graph_close(&graph);
    return result;
}

static double
at_least_0(double seconds)
{
    return seconds > 0 ? seconds : 0;
}

int
limits_launch(int device, int rounds, struct launch_limits *limits, struct status *status)
{
    struct device_scope scope;
    if (device_enter(&scope, device, status) < 0)
        return -1;

    int result = -1;
    struct probe probe = {0};
    double host = 0, blocks = 0, generations = 0, queued = 0, graph = 0;
    int multiprocessors = 0, shared = 0;
    if (rounds > ROUNDS_MOST)
        rounds = ROUNDS_MOST;
    if (probe_open(&probe, &scope, 0, status) < 0)
        goto done;
    cudaError_t error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, scope.device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerMultiprocessor, scope.device);
    if (error != cudaSuccess) {
        device_status(status, error, "cudaDeviceGetAttribute");
        goto done;
    }
    const struct empties one = {1, 1, 0, 1, NULL}, grid = {BLOCKS, THREADS, 0, 1, NULL},
                         many = {1, 1, 0, QUEUED, &host},
                         lonely = {(unsigned)multiprocessors * GENERATIONS, THREADS, (unsigned)shared / 2, 1, NULL};
    if (measure(&probe, HEAD_START, &one, rounds, &limits->kernel, status) < 0 ||
        measure(&probe, HEAD_START, &grid, rounds, &blocks, status) < 0 ||
        measure(&probe, HEAD_START, &lonely, rounds, &generations, status) < 0 ||
        measure(&probe, HEAD_START_QUEUED, &many, rounds, &queued, status) < 0 ||
        measure_graph(&probe, rounds, &graph, status) < 0)
        goto done;
    limits->block = at_least_0(blocks - limits->kernel) / (BLOCKS - 1);
    limits->turnaround = at_least_0(generations - limits->kernel) / (GENERATIONS - 1);
    limits->queued = at_least_0(queued - limits->kernel) / (QUEUED - 1);
    limits->node = at_least_0(graph - limits->kernel) / (NODES - 1);
    limits->issued = host / QUEUED;
    result = 0;
done:
    probe_close(&probe);
    device_leave(&scope);
    return result;
}
