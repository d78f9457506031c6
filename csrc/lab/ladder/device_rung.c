#include "lab/ladder/device_rung.h"

#include <cuda_runtime_api.h>
#include <stdint.h>

#include "cuda/lab/launches.h"
#include "gpu/device.h"
#include "gpu/state.h"

/* About 20 us: longer than the host takes to queue two events and a launch behind it, at most 4 us each. On an idle
 * stream the events would be 6.6 us apart whatever the kernel, because the launch reaches the GPU that late. */
enum { HEAD_START_CYCLES = 40000 };

static cudaError_t
launch_between(const struct rung *rung, const struct rung_call *call, cudaEvent_t begin, cudaEvent_t end,
               const char **what)
{
    *what = "delay_launch";
    cudaError_t error = delay_launch(HEAD_START_CYCLES, call->stream);
    if (error != cudaSuccess)
        return error;
    *what = "cudaEventRecord";
    error = cudaEventRecord(begin, call->stream);
    if (error != cudaSuccess)
        return error;
    *what = rung->name;
    error = (cudaError_t)rung->launch(call);
    if (error != cudaSuccess)
        return error;
    *what = "cudaEventRecord";
    return cudaEventRecord(end, call->stream);
}

int
rung_check_capability(const struct rung *rung, int device, struct status *status)
{
    int major = 0, minor = 0;
    if (rung->min_cc == 0)
        return 0;
    cudaError_t error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaDeviceGetAttribute");
    if ((unsigned)(10 * major + minor) < rung->min_cc)
        return status_set(status, STATUS_VALUE, "rung %s needs compute capability %u.%u, and cuda:%d has %d.%d",
                          rung->name, rung->min_cc / 10, rung->min_cc % 10, device, major, minor);
    return 0;
}

static int
check_alignment(const struct rung *rung, const struct rung_call *call, struct status *status)
{
    const void *const operands[] = {call->a, call->b, call->c};
    static const char *const names[] = {"a", "b", "out"};
    for (int i = 0; i < 3 && rung->alignment; i++)
        if ((uintptr_t)operands[i] % rung->alignment)
            return status_set(status, STATUS_VALUE, "rung %s takes memory aligned to %zu bytes, and %s is at %p",
                              rung->name, rung->alignment, names[i], operands[i]);
    return 0;
}

int
rung_time_on_device(const struct rung *rung, const struct rung_call *call, double *seconds, struct status *status)
{
    struct device_scope scope;
    if (check_alignment(rung, call, status) < 0)
        return -1;
    if (device_enter_relaxed(&scope, call->device, status) < 0)
        return -1;
    if (rung_check_capability(rung, scope.device, status) < 0) {
        device_leave(&scope);
        return -1;
    }

    cudaEvent_t begin = NULL, end = NULL;
    float milliseconds = 0;
    const char *what = "cudaEventCreate";
    cudaError_t error = cudaEventCreate(&begin);
    if (error == cudaSuccess)
        error = cudaEventCreate(&end);
    if (error != cudaSuccess)
        goto done;
    error = launch_between(rung, call, begin, end, &what);
    /* Waits even where recording the second event failed: the caller may free the arrays. */
    cudaError_t waited = stream_wait(call->stream);
    if (error == cudaSuccess && waited != cudaSuccess) {
        error = waited;
        what = rung->name;
    }
    if (error != cudaSuccess)
        goto done;
    what = "cudaEventElapsedTime";
    error = cudaEventElapsedTime(&milliseconds, begin, end);
    *seconds = milliseconds / 1e3;
done:
    if (error != cudaSuccess)
        device_status(status, error, what);
    if (begin)
        device_ignore(cudaEventDestroy(begin));
    if (end)
        device_ignore(cudaEventDestroy(end));
    device_leave(&scope);
    return error == cudaSuccess ? 0 : -1;
}

enum { WARP = 32 };

static cudaError_t
look_at_kernel(const struct kernel_launch *launch, int device, struct rung_facts *facts, const char **what)
{
    struct cudaFuncAttributes attributes;
    int multiprocessors = 0, most_threads = 0;
    const unsigned threads = launch->block[0] * launch->block[1] * launch->block[2];

    *what = "cudaFuncGetAttributes";
    cudaError_t error = cudaFuncGetAttributes(&attributes, launch->function);
    if (error != cudaSuccess)
        return error;
    *what = "cudaOccupancyMaxActiveBlocksPerMultiprocessor";
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&facts->active_blocks, launch->function, (int)threads,
                                                          launch->shared);
    if (error != cudaSuccess)
        return error;
    *what = "cudaDeviceGetAttribute";
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&most_threads, cudaDevAttrMaxThreadsPerMultiProcessor, device);
    if (error != cudaSuccess)
        return error;
    *what = "cudaLaunchKernel";
    if (facts->active_blocks == 0)
        return cudaErrorLaunchOutOfResources;

    const unsigned warps = (threads + WARP - 1) / WARP;
    const double blocks = (double)launch->grid[0] * launch->grid[1] * launch->grid[2];
    facts->registers = attributes.numRegs;
    facts->static_shared = attributes.sharedSizeBytes;
    facts->local = attributes.localSizeBytes;
    facts->occupancy = (double)facts->active_blocks * warps * WARP / most_threads;
    facts->waves = blocks / ((double)facts->active_blocks * multiprocessors);
    return cudaSuccess;
}

int
rung_facts(const struct rung *rung, const struct rung_call *call, struct rung_facts *facts, struct status *status)
{
    struct device_scope scope;
    struct rung_call described = *call;
    *facts = (struct rung_facts){0};
    described.describe = &facts->launch;
    if (device_enter_relaxed(&scope, call->device, status) < 0)
        return -1;
    if (rung_check_capability(rung, scope.device, status) < 0) {
        device_leave(&scope);
        return -1;
    }
    const char *what = rung->name;
    cudaError_t error = (cudaError_t)rung->launch(&described);
    if (error == cudaSuccess && facts->launch.launches)
        error = look_at_kernel(&facts->launch, scope.device, facts, &what);
    if (error != cudaSuccess)
        device_status(status, error, what);
    device_leave(&scope);
    return error == cudaSuccess ? 0 : -1;
}
