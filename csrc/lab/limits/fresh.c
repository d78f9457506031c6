/* Seconds from kernel to kernel of a graph, by the bytes that each kernel moves, where no cache holds its memory. */
#include <cuda_runtime_api.h>

#include "cuda/lab/launches.h"
#include "gpu/device.h"
#include "lab/limits/probe.h"

enum {
    SMALLEST = 24 << 10,
    STEP = 4,
    NODES = 64,
    ROUNDS_MAX = 5,
    HEAD_START = 1200000, /* cycles, 0.6 ms: the host launches a graph of so many nodes in less */
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
launch_graph(const struct probe *probe, const void *argument)
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
    return probe_time(probe, HEAD_START, launch_graph, stretch, "cudaGraphLaunch", seconds, status);
}

/* The median of all rounds but the first. */
static int
measure(const struct fresh *fresh, int rounds, double kernel, struct fresh_seconds *found, struct status *status)
{
    double each[ROUNDS_MAX];
    const size_t fit = fresh->l2 / 2 / found->bytes;
    struct stretch stretch = {fresh, found->bytes, fit < NODES ? (unsigned)fit : NODES, NULL};
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

int
limits_fresh(const struct device_scope *scope, int rounds, double kernel, struct fresh_seconds sizes[LIMITS_FRESH],
             struct status *status)
{
    struct fresh fresh = {0};
    struct device_facts facts;
    int result = -1;
    if (rounds > ROUNDS_MAX)
        rounds = ROUNDS_MAX;
    if (device_facts(scope->device, &facts, status) < 0)
        return -1;
    fresh.l2 = facts.l2 / sizeof(uint64_t) * sizeof(uint64_t);
    if (probe_open(&fresh.probe, scope, 2 * fresh.l2, status) < 0)
        goto done;
    size_t bytes = SMALLEST;
    for (int i = 0; i < LIMITS_FRESH; i++, bytes *= STEP) {
        sizes[i].bytes = bytes;
        if (measure(&fresh, rounds, kernel, &sizes[i], status) < 0)
            goto done;
    }
    result = 0;
done:
    probe_close(&fresh.probe);
    return result;
}
