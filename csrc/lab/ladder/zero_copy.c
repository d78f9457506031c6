/* zero_copy: no copy at all. The kernel reads and writes page-locked host memory through its device address; its loads
 * and stores use both directions of the link at once.
 *
 * 2^28 float32 over PCIe 5 take 43.5 ms in one launch, where a pipeline of copies takes 41.4. */
#include <stdint.h>

#include "gpu/device.h"
#include "lab/ladder/transfer_rung.h"

extern const struct rung rung_zero_copy;

static int
device_address(const void *host, void **device, struct status *status)
{
    cudaError_t error = cudaHostGetDevicePointer(device, (void *)host, 0);
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaHostGetDevicePointer");
}

static int
check_kernel(const struct transfer_run *run, void *const device[3], struct status *status)
{
    const char *name = run->kernel->name;
    if (transfer_kernel_accumulates(run))
        return status_set(status, STATUS_VALUE,
                          "rung zero_copy: the kernel %s adds to what out holds; take one that writes the sum", name);
    for (int i = 0; i < 3 && run->kernel->alignment; i++)
        if ((uintptr_t)device[i] % run->kernel->alignment)
            return status_set(
                status, STATUS_VALUE,
                "rung zero_copy: the kernel %s takes memory aligned to %zu bytes; naive and tuned take any", name,
                run->kernel->alignment);
    return 0;
}

static int
run_zero_copy(const struct rung_call *call, struct status *status)
{
    struct transfer_run run;
    void *device[3];
    if (call->n == 0)
        return 0;
    int result = -1;
    if (transfer_run_enter(&run, &rung_zero_copy, call, status) < 0 ||
        device_address(call->a, &device[0], status) < 0 || device_address(call->b, &device[1], status) < 0 ||
        device_address(call->c, &device[2], status) < 0 || check_kernel(&run, device, status) < 0 ||
        timeline_open(call->timeline, 1, status) < 0)
        goto done;

    transfer_clock_start(&run);
    result = transfer_kernel_queue(&run, device[0], device[1], device[2], call->n, NULL, 0, 0, status);
    const cudaError_t error = stream_wait(NULL);
    if (error != cudaSuccess && result == 0)
        result = device_status(status, error, "cudaStreamSynchronize");
    transfer_clock_stop(&run);
done:
    return transfer_run_leave(&run, result, status);
}

const struct rung rung_zero_copy = {
    .name = "zero_copy",
    .kind = RUNG_TRANSFER,
    .after = "streams2",
    .changes = "no copies and no device arrays: the kernel reads and writes page-locked host memory over the link",
    .tested = "double",
    .stages = STAGES_OVERLAPPING,
    .memory = RUNG_MEMORY_PINNED,
    .components = EVERY_COMPONENT,
    .params = {KERNEL_PARAM(KERNEL_NAIVE)},
    .run = run_zero_copy,
};
