/* The host's page-locked memory as a kernel sees it over the link: how long it takes to read two arrays there and to
 * write a third, by their size. */
#include <cuda_runtime_api.h>
#include <string.h>

#include "cuda/lab/limits/probe_launches.h"
#include "gpu/device.h"
#include "lab/base/probes.h"
#include "lab/limits/probe.h"

enum { SMALLEST = 4 << 10, STEP = 4, ARRAYS = 3, ROUNDS = 9 };

struct mapped {
    struct probe probe;
    void *host, *device; /* one memory by its two addresses */
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
    memset(mapped->host, 0, bytes);
    error = cudaHostGetDevicePointer(&mapped->device, mapped->host, 0);
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaHostGetDevicePointer");
}

static void
mapped_close(const struct mapped *mapped)
{
    probe_close(&mapped->probe);
    if (mapped->host)
        device_ignore(cudaFreeHost(mapped->host));
}

/* Seconds of the host until the kernel is done; the median of the rounds after a first one. */
static int
merged(const struct mapped *mapped, size_t bytes, double *seconds, struct status *status)
{
    double each[ROUNDS];
    for (int round = -1; round < ROUNDS; round++) {
        const double begin = now_seconds();
        const cudaError_t error = limits_merge_launch(mapped->device, ARRAYS * bytes, mapped->probe.stream);
        const cudaError_t waited = stream_wait(mapped->probe.stream);
        each[round < 0 ? 0 : round] = now_seconds() - begin;
        if (error != cudaSuccess || waited != cudaSuccess)
            return device_status(status, error != cudaSuccess ? error : waited, "cudaLaunchKernel");
    }
    *seconds = probe_median(each, ROUNDS);
    return 0;
}

int
limits_mapped(int device, size_t most, struct mapped_limits *limits, struct status *status)
{
    struct device_scope scope;
    if (device_enter_relaxed(&scope, device, status) < 0)
        return -1;

    int result = -1;
    struct mapped mapped = {0};
    *limits = (struct mapped_limits){0};
    if (mapped_open(&mapped, &scope, ARRAYS * (most < SMALLEST ? SMALLEST : most), status) < 0)
        goto done;
    size_t bytes = SMALLEST;
    do {
        struct mapped_seconds *found = &limits->sizes[limits->count];
        found->bytes = bytes;
        if (merged(&mapped, bytes, &found->seconds, status) < 0)
            goto done;
        limits->count++;
        bytes *= STEP;
    } while (bytes <= most && limits->count < LIMITS_SIZES);
    result = 0;
done:
    mapped_close(&mapped);
    device_leave(&scope);
    return result;
}
