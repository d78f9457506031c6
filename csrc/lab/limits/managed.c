/* Memory that host and device share, whose pages the driver moves to whoever touches them: an addition's worth of it,
 * filled by the host, read and written by a kernel, and read by the host. */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/lab/limits/probe_launches.h"
#include "gpu/device.h"
#include "lab/base/probes.h"
#include "lab/limits/probe.h"

enum { SMALLEST = 4 << 10, STEP = 4, ARRAYS = 3, ROUNDS = 3 };

/* Seconds of the host of the pages' way there and back, and of the memory itself, made and freed. */
static int
shared_once(const struct probe *probe, char *ordinary, size_t bytes, double *touched, double *made,
            struct status *status)
{
    char *memory;
    const double begin = now_seconds();
    cudaError_t error = cudaMallocManaged((void **)&memory, ARRAYS * bytes, cudaMemAttachGlobal);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaMallocManaged");
    const double there = now_seconds();
    for (int i = 0; i < ARRAYS - 1; i++)
        memcpy(memory + (size_t)i * bytes, ordinary, bytes);
    error = limits_merge_launch(memory, ARRAYS * bytes, probe->stream);
    const cudaError_t waited = stream_wait(probe->stream);
    if (error == cudaSuccess)
        error = waited;
    if (error == cudaSuccess)
        memcpy(ordinary, memory + (ARRAYS - 1) * bytes, bytes);
    const double done = now_seconds();
    device_ignore(cudaFree(memory));
    *touched = done - there;
    *made = there - begin + now_seconds() - done;
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaLaunchKernel");
}

static int
shared(const struct probe *probe, char *ordinary, struct managed_seconds *found, struct status *status)
{
    double touched[ROUNDS], made[ROUNDS];
    for (int round = -1; round < ROUNDS; round++) {
        const int kept = round < 0 ? 0 : round;
        if (shared_once(probe, ordinary, found->bytes, &touched[kept], &made[kept], status) < 0)
            return -1;
    }
    found->touched = probe_median(touched, ROUNDS);
    found->made = probe_median(made, ROUNDS);
    return 0;
}

/* Whether the host may touch such memory while the device works. */
static int
has_managed(int device, bool *has, struct status *status)
{
    static const enum cudaDeviceAttr needed[] = {cudaDevAttrManagedMemory, cudaDevAttrConcurrentManagedAccess};
    *has = true;
    for (int i = 0; i < 2; i++) {
        int supported = 0;
        const cudaError_t error = cudaDeviceGetAttribute(&supported, needed[i], device);
        if (error != cudaSuccess)
            return device_status(status, error, "cudaDeviceGetAttribute");
        *has = *has && supported;
    }
    return 0;
}

int
limits_managed(int device, size_t most, struct managed_limits *limits, struct status *status)
{
    struct device_scope scope;
    if (device_enter_relaxed(&scope, device, status) < 0)
        return -1;

    int result = -1;
    bool has = false;
    struct probe probe = {0};
    char *ordinary = NULL;
    *limits = (struct managed_limits){0};
    if (probe_open(&probe, &scope, 0, status) < 0 || has_managed(scope.device, &has, status) < 0)
        goto done;
    most = most < SMALLEST ? SMALLEST : most;
    ordinary = calloc(most, 1);
    if (!ordinary) {
        status_set(status, STATUS_MEMORY, "there is no memory for a probe of %zu bytes", most);
        goto done;
    }
    for (size_t bytes = SMALLEST; has && bytes <= most && limits->count < LIMITS_SIZES; bytes *= STEP) {
        struct managed_seconds *found = &limits->sizes[limits->count];
        found->bytes = bytes;
        if (shared(&probe, ordinary, found, status) < 0)
            goto done;
        limits->count++;
    }
    result = 0;
done:
    free(ordinary);
    probe_close(&probe);
    device_leave(&scope);
    return result;
}
