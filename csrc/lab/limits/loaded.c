/* The latency of DRAM under load: from one warp a multiprocessor to as many bytes in flight as its threads can hold. */
#include <cuda_runtime_api.h>

#include "cuda/lab/launches.h"
#include "gpu/device.h"
#include "lab/base/probes.h"
#include "lab/limits/probe.h"

enum { WARP = 32, VECTOR = 16 };

/* On each multiprocessor. */
static const struct shape {
    unsigned blocks, warps, loads;
} shapes[LIMITS_LOADED] = {
    {1, 1, 1},  {1, 2, 1},  {1, 4, 1},  {1, 8, 1},  {1, 12, 1}, {1, 16, 1}, {1, 20, 1},
    {1, 24, 1}, {1, 32, 1}, {1, 24, 2}, {1, 32, 2}, {1, 24, 4}, {1, 32, 4}, {2, 32, 4},
};

static cudaError_t
zero(const struct probe *probe, const void *argument)
{
    const size_t *bytes = argument;
    return limits_write_launch(probe->memory, *bytes, 0, probe->stream);
}

static cudaError_t
read_loaded(const struct probe *probe, const void *argument)
{
    return limits_loaded_launch(probe->memory, argument, probe->sink, probe->stream);
}

static int
measure_point(const struct probe *probe, const struct device_facts *facts, const struct shape *shape, size_t bytes,
              int rounds, struct loaded_latency *point, struct status *status)
{
    const unsigned threads = shape->warps * WARP;
    if (shape->blocks * threads > (unsigned)facts->threads_per_multiprocessor)
        return 0;
    struct limits_load load = {shape->blocks * (unsigned)facts->multiprocessors, threads, shape->loads, 0};
    const size_t round_bytes = (size_t)load.blocks * load.threads * load.loads * VECTOR;
    load.rounds = (unsigned)(bytes / round_bytes);
    if (load.rounds == 0)
        return 0;
    double best = 0;
    for (int round = -1; round < rounds; round++) { /* the first warms up */
        double seconds;
        if (probe_time(probe, 0, read_loaded, &load, "cudaLaunchKernel", &seconds, status) < 0)
            return -1;
        if (round >= 0 && (best == 0 || seconds < best))
            best = seconds;
    }
    point->bytes = round_bytes / (size_t)facts->multiprocessors;
    point->seconds = best / load.rounds;
    point->rate = best > 0 ? (double)round_bytes * load.rounds / best : 0;
    return 0;
}

int
limits_loaded(int device, size_t bytes, int rounds, struct loaded_latency points[LIMITS_LOADED], struct status *status)
{
    struct device_scope scope;
    struct device_facts facts;
    if (device_facts(device, &facts, status) < 0 || device_enter_relaxed(&scope, device, status) < 0)
        return -1;

    int result = -1;
    double seconds;
    struct probe probe = {0};
    for (int i = 0; i < LIMITS_LOADED; i++)
        points[i] = (struct loaded_latency){0};
    if (probe_open(&probe, &scope, bytes, status) < 0 ||
        probe_time(&probe, 0, zero, &bytes, "cudaLaunchKernel", &seconds, status) < 0)
        goto done;
    for (int i = 0; i < LIMITS_LOADED; i++)
        if (measure_point(&probe, &facts, &shapes[i], bytes, rounds, &points[i], status) < 0)
            goto done;
    result = 0;
done:
    probe_close(&probe);
    device_leave(&scope);
    return result;
}
