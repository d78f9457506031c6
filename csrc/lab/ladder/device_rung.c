#include "lab/ladder/device_rung.h"

#include <cuda_runtime_api.h>
#include <stdint.h>

#include "gpu/device.h"
#include "gpu/state.h"
#include "lab/limits/probe.h"

/* About 20 us: longer than the host takes to queue two events and a launch after it, at most 4 us each. On an idle
 * stream the events would be 6.6 us apart whatever the kernel, because the launch reaches the GPU that late. */
enum { HEAD_START_CYCLES = 40000 };

struct timed {
    const struct rung *rung;
    const struct rung_call *call;
};

static cudaError_t
launch_rung(const struct probe *probe, const void *argument)
{
    (void)probe;
    const struct timed *timed = argument;
    return (cudaError_t)timed->rung->launch(timed->call);
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
    /* Waits even where queueing failed: the caller may free the arrays. */
    const struct timed timed = {rung, call};
    const struct probe_work work = {
        .launch = launch_rung, .argument = &timed, .head_start = HEAD_START_CYCLES, .what = rung->name};
    struct probe probe = {.scope.device = call->device, .stream = call->stream};
    if (check_alignment(rung, call, status) < 0 || probe_enter(&probe, status) < 0)
        return -1;
    int result = rung_check_capability(rung, probe.scope.device, status);
    if (result == 0)
        result = probe_make_events(&probe, status);
    if (result == 0)
        result = probe_time(&probe, &work, seconds, status);
    probe_destroy_events(&probe);
    probe_leave(&probe);
    return result;
}

enum { WARP = 32 };

static int
look_at_kernel(const struct kernel_launch *launch, int device, struct rung_facts *facts, struct status *status)
{
    struct cudaFuncAttributes attributes;
    struct device_facts of_device;
    const unsigned threads = launch->block[0] * launch->block[1] * launch->block[2];
    if (CUDA_CALL(status, cudaFuncGetAttributes, &attributes, launch->function) < 0)
        return -1;
    if (CUDA_CALL(status, cudaOccupancyMaxActiveBlocksPerMultiprocessor, &facts->active_blocks, launch->function,
                  (int)threads, launch->shared) < 0)
        return -1;
    if (device_facts(device, &of_device, status) < 0)
        return -1;
    if (facts->active_blocks == 0)
        return device_status(status, cudaErrorLaunchOutOfResources, "cudaLaunchKernel");

    const unsigned warps = (threads + WARP - 1) / WARP;
    const double blocks = (double)launch->grid[0] * launch->grid[1] * launch->grid[2];
    facts->registers = attributes.numRegs;
    facts->static_shared = attributes.sharedSizeBytes;
    facts->local = attributes.localSizeBytes;
    facts->occupancy = (double)facts->active_blocks * warps * WARP / of_device.threads_per_multiprocessor;
    facts->waves = blocks / ((double)facts->active_blocks * of_device.multiprocessors);
    return 0;
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
    int result = rung_check_capability(rung, scope.device, status);
    if (result == 0) {
        const int error = rung->launch(&described);
        result = error ? device_status(status, error, rung->name) : 0;
    }
    if (result == 0 && facts->launch.launches)
        result = look_at_kernel(&facts->launch, scope.device, facts, status);
    device_leave(&scope);
    return result;
}
