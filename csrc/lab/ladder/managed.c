/* managed: three arrays that host and device share; the driver moves their pages to the side that touches them.
 *
 * The host copies its operands in and the sum out, because a caller's arrays are never managed memory; the kernel's
 * page faults are the transfer. Small sizes only: how long a fault takes depends on the driver, and nothing bounds it.
 */
#include <string.h>

#include "gpu/device.h"
#include "lab/ladder/transfer_rung.h"

extern const struct rung rung_managed;

enum { MAX_BYTES = 64 << 20 };

static int
check_support(const struct transfer_run *run, struct status *status)
{
    static const enum cudaDeviceAttr needed[] = {cudaDevAttrManagedMemory, cudaDevAttrConcurrentManagedAccess};
    if (run->bytes > MAX_BYTES)
        return status_set(status, STATUS_VALUE,
                          "rung managed takes arrays of at most %d MiB, not %zu bytes: its pages move a few at a time",
                          MAX_BYTES >> 20, run->bytes);
    for (int i = 0; i < 2; i++) {
        int supported = 0;
        cudaError_t error = cudaDeviceGetAttribute(&supported, needed[i], run->scope.device);
        if (error != cudaSuccess)
            return device_status(status, error, "cudaDeviceGetAttribute");
        if (!supported)
            return status_set(status, STATUS_VALUE,
                              "rung managed needs managed memory that the host may touch while the GPU works, and "
                              "cuda:%d has none",
                              run->scope.device);
    }
    return 0;
}

static int
open_arrays(const struct transfer_run *run, void *managed[3], struct status *status)
{
    for (int i = 0; i < 3; i++) {
        cudaError_t error = cudaMallocManaged(&managed[i], run->bytes, cudaMemAttachGlobal);
        if (error != cudaSuccess) {
            managed[i] = NULL;
            return device_status(status, error, "cudaMallocManaged");
        }
    }
    return 0;
}

static void
close_arrays(void *managed[3])
{
    for (int i = 0; i < 3; i++) {
        if (managed[i])
            device_ignore(cudaFree(managed[i]));
        managed[i] = NULL;
    }
}

static void
copy_by_host(const struct transfer_run *run, enum timeline_what what, void *target, const void *source)
{
    const size_t entry = timeline_begin_host(run->call->timeline, what);
    memcpy(target, source, run->bytes);
    timeline_end_host(run->call->timeline, entry);
}

static int
add_and_wait(const struct transfer_run *run, void *const managed[3], struct status *status)
{
    const struct rung_call *call = run->call;
    copy_by_host(run, TIMELINE_TO_DEVICE, managed[0], call->a);
    copy_by_host(run, TIMELINE_TO_DEVICE, managed[1], call->b);
    if (transfer_kernel_accumulates(run))
        memset(managed[2], 0, run->bytes);
    int result = transfer_kernel_queue(run, managed[0], managed[1], managed[2], call->n, NULL, 0, 0, status);
    const cudaError_t error = stream_wait(NULL);
    if (error != cudaSuccess && result == 0)
        result = device_status(status, error, "cudaStreamSynchronize");
    if (result == 0)
        copy_by_host(run, TIMELINE_TO_HOST, call->c, managed[2]);
    return result;
}

static int
run_managed(const struct rung_call *call, struct status *status)
{
    struct transfer_run run;
    void *managed[3] = {NULL};
    struct timeline *timeline = call->timeline;
    const bool inside = call->params[PARAM_ALLOCATES];
    if (call->n == 0)
        return 0;
    int result = -1;
    if (transfer_run_enter(&run, &rung_managed, call, status) < 0 || check_support(&run, status) < 0 ||
        timeline_open(timeline, 6, status) < 0 || (!inside && open_arrays(&run, managed, status) < 0))
        goto done;

    transfer_clock_start(&run);
    if (inside) {
        const size_t entry = timeline_begin_host(timeline, TIMELINE_ALLOCATE);
        const int opened = open_arrays(&run, managed, status);
        timeline_end_host(timeline, entry);
        if (opened < 0)
            goto done;
    }
    result = add_and_wait(&run, managed, status);
    if (inside) {
        const size_t entry = timeline_begin_host(timeline, TIMELINE_FREE);
        close_arrays(managed);
        timeline_end_host(timeline, entry);
    }
    transfer_clock_stop(&run);
done:
    close_arrays(managed);
    return transfer_run_leave(&run, result, status);
}

const struct rung rung_managed = {
    .name = "managed",
    .kind = RUNG_TRANSFER,
    .after = "pageable",
    .changes = "unified memory: the driver moves pages to where they are touched; at most 64 MiB an array",
    .tested = "double",
    .stages = STAGES_SERIAL,
    .memory = RUNG_MEMORY_PAGEABLE,
    .by_name = true,
    .components = EVERY_COMPONENT,
    .params = {KERNEL_PARAM(KERNEL_NAIVE), ALLOCATES_PARAM(0)},
    .run = run_managed,
};
