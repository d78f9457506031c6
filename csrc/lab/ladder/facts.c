#include "lab/ladder/facts.h"

#include <cuda_runtime_api.h>

#include "gpu/device.h"
#include "gpu/state.h"
#include "lab/ladder/clock.h"

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
