#include <stdlib.h>
#include <string.h>

#include "batch_queue.h"
#include "graph_kind.h"
#include "stream.h"

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
add_in_capture(struct device_batch batch, struct status *status)
{
    const size_t bytes = batch.joins * sizeof *batch.join;
    void **const join = malloc(bytes + 1);
    if (!join)
        return status_set(status, STATUS_MEMORY, "there is no memory for %zu streams", batch.joins);
    if (bytes)
        memcpy(join, batch.join, bytes);
    const int kept = stream_keep_capturing(join, (int)batch.joins, status);
    batch.join = join;
    batch.joins = (size_t)kept;
    const int result = kept < 0 ? -1 : device_add_many(&batch, status);
    free(join);
    return result;
}

static int
add(const void *work, bool in_capture, struct status *status)
{
    const struct device_batch *batch = work;
    return in_capture ? add_in_capture(*batch, status) : device_add_many(batch, status);
}

int
graph_of_batch(struct graph **graph, const struct device_batch *batch, struct status *status)
{
    static const struct graph_kind kind = {.size = sizeof *batch, .capture = capture, .queue = queue, .add = add};
    return graph_open(graph, &kind, batch, batch->device, batch->stream, status);
}
