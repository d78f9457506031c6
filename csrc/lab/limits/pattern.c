/* A memory test's patterns in device memory. */
#include <cuda_runtime_api.h>

#include "cuda/lab/launches.h"
#include "gpu/device.h"
#include "gpu/stream.h"
#include "lab/base/probes.h"
#include "lab/limits/probe.h"

struct words {
    uint64_t *written;
    const uint64_t *checked;
    size_t count;
    const struct pattern *pattern;
};

static cudaError_t
launch_write(const struct probe *probe, const void *argument)
{
    const struct words *words = argument;
    return limits_pattern_write_launch(words->written, words->count, words->pattern, probe->stream);
}

static cudaError_t
launch_check(const struct probe *probe, const void *argument)
{
    const struct words *words = argument;
    return limits_pattern_check_launch(words->checked, words->count, words->pattern, probe->memory, probe->stream);
}

int
pattern_probe_check(const struct probe *probe, const uint64_t *memory, size_t count, const struct pattern *pattern,
                    struct pattern_found *found, double *seconds, struct status *status)
{
    const struct words words = {.checked = memory, .count = count, .pattern = pattern};
    cudaError_t error = cudaMemsetAsync(probe->memory, 0, sizeof *found, probe->stream);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaMemsetAsync");
    if (probe_time(probe, 0, launch_check, &words, "cudaLaunchKernel", seconds, status) < 0)
        return -1;
    error = cudaMemcpyAsync(found, probe->memory, sizeof *found, cudaMemcpyDeviceToHost, probe->stream);
    const cudaError_t waited = stream_wait(probe->stream);
    if (error == cudaSuccess)
        error = waited;
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaMemcpyAsync");
}

/* Writes where `words->written` is not NULL, else checks. */
static int
run(int device, void *stream, const struct words *words, struct pattern_found *found, double *seconds,
    struct status *status)
{
    struct device_scope scope;
    if (device_enter_relaxed(&scope, device, status) < 0)
        return -1;

    struct probe probe = {0};
    int result = -1;
    *seconds = 0;
    if (probe_open(&probe, &scope, found ? sizeof *found : 0, status) < 0 ||
        stream_join(scope.device, stream, probe.stream, status) < 0)
        goto done;
    result = words->written
                 ? probe_time(&probe, 0, launch_write, words, "cudaLaunchKernel", seconds, status)
                 : pattern_probe_check(&probe, words->checked, words->count, words->pattern, found, seconds, status);
done:
    probe_close(&probe);
    device_leave(&scope);
    return result;
}

int
limits_pattern_write(int device, void *stream, uint64_t *memory, size_t words, const struct pattern *pattern,
                     double *seconds, struct status *status)
{
    const struct words all = {.written = memory, .count = words, .pattern = pattern};
    return run(device, stream, &all, NULL, seconds, status);
}

int
limits_pattern_check(int device, void *stream, const uint64_t *memory, size_t words, const struct pattern *pattern,
                     struct pattern_found *found, double *seconds, struct status *status)
{
    const struct words all = {.checked = memory, .count = words, .pattern = pattern};
    return run(device, stream, &all, found, seconds, status);
}

int
limits_memory(int device, size_t *left, size_t *all, struct status *status)
{
    struct device_scope scope;
    if (device_enter_relaxed(&scope, device, status) < 0)
        return -1;
    const cudaError_t error = cudaMemGetInfo(left, all);
    device_leave(&scope);
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaMemGetInfo");
}
