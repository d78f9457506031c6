/* The host's page-locked memory as a kernel sees it over the link: how fast it reads and writes there, and how long one
 * load takes. */
#include <cuda_runtime_api.h>
#include <string.h>

#include "device.h"
#include "kernels.h"
#include "probe.h"
#include "probe_launches.h"
#include "probes.h"

enum { LINK = 4608, STEPS = 1024, ROUNDS = 5 }; /* LINK in bytes, as in latency.c; a step takes 1 us */

struct mapped {
    struct probe probe;
    void *host, *device; /* one memory by its two addresses */
    size_t bytes;
};

static int
mapped_open(struct mapped *mapped, const struct device_scope *scope, size_t bytes, struct status *status)
{
    if (probe_open(&mapped->probe, scope, 0, status) < 0)
        return -1;
    cudaError_t error = cudaHostAlloc(&mapped->host, bytes, cudaHostAllocMapped);
    if (error != cudaSuccess) {
        mapped->host = NULL;
        return device_status(status, error, "cudaHostAlloc");
    }
    mapped->bytes = bytes;
    memset(mapped->host, 0, bytes);
    error = cudaHostGetDevicePointer(&mapped->device, mapped->host, 0);
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaHostGetDevicePointer");
}

static void
mapped_close(const struct mapped *mapped)
{
    probe_close(&mapped->probe);
    if (mapped->host)
        cudaFreeHost(mapped->host);
}

static cudaError_t
read_all(const struct probe *probe, const void *argument)
{
    const struct mapped *mapped = argument;
    return limits_read_launch(mapped->device, mapped->bytes, probe->sink, probe->stream);
}

static cudaError_t
write_all(const struct probe *probe, const void *argument)
{
    const struct mapped *mapped = argument;
    return limits_write_launch(mapped->device, mapped->bytes, 0, probe->stream);
}

static cudaError_t
merge_thirds(const struct probe *probe, const void *argument)
{
    const struct mapped *mapped = argument;
    return limits_merge_launch(mapped->device, mapped->bytes, probe->stream);
}

static cudaError_t
forge(const struct probe *probe, const void *argument)
{
    const struct mapped *mapped = argument;
    return limits_chain_launch(mapped->device, (unsigned)(mapped->bytes / LINK), LINK, probe->stream);
}

static cudaError_t
follow(const struct probe *probe, const void *argument)
{
    const struct mapped *mapped = argument;
    return limits_chase_launch(mapped->device, STEPS, 1, probe->sink, probe->stream);
}

/* The best of the rounds after a first one. */
static int
best(const struct mapped *mapped, probe_launch *launch, double *seconds, struct status *status)
{
    *seconds = 0;
    for (int round = -1; round < ROUNDS; round++) {
        double once;
        if (probe_time(&mapped->probe, 0, launch, mapped, "cudaLaunchKernel", &once, status) < 0)
            return -1;
        if (round >= 0 && (*seconds == 0 || once < *seconds))
            *seconds = once;
    }
    return 0;
}

int
limits_mapped(int device, size_t bytes, struct mapped_limits *limits, struct status *status)
{
    struct device_scope scope;
    if (device_enter(&scope, device, status) < 0)
        return -1;

    int result = -1;
    struct mapped mapped = {0};
    double read = 0, write = 0, mixed = 0, chase = 0, forged;
    *limits = (struct mapped_limits){0};
    if (mapped_open(&mapped, &scope, bytes < LINK ? LINK : bytes, status) < 0 ||
        best(&mapped, read_all, &read, status) < 0 || best(&mapped, write_all, &write, status) < 0 ||
        best(&mapped, merge_thirds, &mixed, status) < 0 || best(&mapped, forge, &forged, status) < 0 ||
        best(&mapped, follow, &chase, status) < 0)
        goto done;
    limits->read = read > 0 ? (double)mapped.bytes / read : 0;
    limits->write = write > 0 ? (double)mapped.bytes / write : 0;
    limits->mixed = mixed > 0 ? (double)mapped.bytes / mixed : 0;
    limits->latency = chase / STEPS;
    result = 0;
done:
    mapped_close(&mapped);
    device_leave(&scope);
    return result;
}
