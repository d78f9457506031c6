#include "gpu/batch.h"
#include "gpu/batch_queue.h"
#include "gpu/graph_kind.h"
#include "gpu/stream.h"

static cudaError_t
launch(const void *context, cudaStream_t stream)
{
    bool queued;
    return batch_launch_all(context, stream, &queued);
}

static int
capture(cudaGraphExec_t *graph, const struct device_scope *scope, const void *work, struct status *status)
{
    const struct device_batch *batch = work;
    (void)scope;
    return batch->count == 0 ? 0 : graph_capture(graph, launch, batch, status);
}

static int
queue(const struct device_scope *scope, const void *work, cudaGraphExec_t graph, struct status *status)
{
    return batch_queue(scope, work, graph, status);
}

static int
captures(const void *work, bool *any, struct status *status)
{
    const struct device_batch *batch = work;
    return stream_any_captures(batch->device, batch->stream, batch->join, batch->joins, any, status);
}

static int
add(const void *work, struct status *status)
{
    return device_add_batch(work, status);
}

int
graph_of_batch(struct graph **graph, const struct device_batch *batch, struct status *status)
{
    static const struct graph_kind kind = {
        .size = sizeof *batch, .capture = capture, .queue = queue, .captures = captures, .add = add};
    return graph_open(graph, &kind, batch, batch->device, batch->stream, status);
}
