#include "gpu/batch.h"

#include <stdlib.h>

#include <cuda_runtime_api.h>

#include "cuda/batch_kernel.h"
#include "gpu/batch_queue.h"
#include "gpu/device.h"
#include "gpu/stream.h"

/* Additions collected for the next launch. */
struct launcher {
    struct batch_segment *segments; /* BATCH_MAX */
    size_t count;
    cudaStream_t stream;
    bool queued; /* whether any launch is queued */
};

static cudaError_t
launch_collected(struct launcher *launcher)
{
    if (launcher->count == 0)
        return cudaSuccess;
    const cudaError_t error = batch_launch(launcher->segments, launcher->count, launcher->stream);
    launcher->count = 0;
    launcher->queued |= error == cudaSuccess;
    return error;
}

/* Cuts an addition into pieces whose size the table can hold. A piece's size is a multiple of 16 bytes, so every piece
 * is aligned as the whole is. */
static cudaError_t
collect(struct launcher *launcher, const struct batch_add *add)
{
    const size_t bytes = add->n * component_size[add->component];
    cudaError_t error = cudaSuccess;
    for (size_t done = 0; done < bytes && error == cudaSuccess; done += BATCH_MOST_BYTES) {
        const size_t left = bytes - done;
        launcher->segments[launcher->count++] =
            (struct batch_segment){.a = (const char *)add->a + done,
                                   .b = (const char *)add->b + done,
                                   .c = (char *)add->c + done,
                                   .bytes = (uint32_t)(left < BATCH_MOST_BYTES ? left : BATCH_MOST_BYTES),
                                   .component = add->component};
        if (launcher->count == BATCH_MAX)
            error = launch_collected(launcher);
    }
    return error;
}

cudaError_t
batch_launch_all(const struct device_batch *batch, cudaStream_t stream, bool *queued)
{
    struct launcher launcher = {.stream = stream};
    launcher.segments = malloc(BATCH_MAX * sizeof *launcher.segments);
    if (!launcher.segments)
        return cudaErrorMemoryAllocation;
    cudaError_t error = cudaSuccess;
    for (size_t i = 0; i < batch->count && error == cudaSuccess; i++)
        error = collect(&launcher, &batch->adds[i]);
    if (error == cudaSuccess)
        error = launch_collected(&launcher);
    free(launcher.segments);
    *queued = launcher.queued;
    return error;
}

struct queued_batch {
    const struct device_batch *batch;
    cudaGraphExec_t graph; /* NULL: launch the kernels */
};

/* a stream_work */
static int
queue(const void *context, bool *queued, struct status *status)
{
    const struct queued_batch *work = context;
    const struct device_batch *batch = work->batch;
    const cudaError_t error =
        work->graph ? cudaGraphLaunch(work->graph, batch->stream) : batch_launch_all(batch, batch->stream, queued);
    if (error != cudaSuccess)
        return device_status(status, error, work->graph ? "cudaGraphLaunch" : "cudaLaunchKernel");
    *queued = true;
    return 0;
}

int
batch_queue(const struct device_scope *scope, const struct device_batch *batch, cudaGraphExec_t graph,
            struct status *status)
{
    const struct queued_batch work = {batch, graph};
    return stream_queue_between(scope->device, batch->stream, batch->join, batch->joins, queue, &work, status);
}

int
device_add_batch(const struct device_batch *batch, struct status *status)
{
    struct device_scope scope;
    if (batch->count == 0)
        return 0;
    if (device_enter(&scope, batch->device, status) < 0)
        return -1;
    const int result = batch_queue(&scope, batch, NULL, status);
    device_leave(&scope);
    return result;
}
