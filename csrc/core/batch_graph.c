#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "add_graph.h"
#include "batch_queue.h"
#include "runtime.h"
#include "stream.h"

struct batch_graph {
    struct device_batch batch;
    pthread_mutex_t lock; /* held while `exec` is launched: two threads may not do that at once */
    cudaGraphExec_t exec; /* NULL where there is nothing to add, or it was made in a capture */
};

static cudaError_t
launches_of(const void *context, cudaStream_t stream)
{
    bool queued;
    return batch_launch_all(context, stream, &queued);
}

static int
make_graph(struct batch_graph *graph, struct status *status)
{
    bool captures;
    if (stream_captures(graph->batch.stream, &captures, status) < 0)
        return -1;
    if (captures || graph->batch.count == 0)
        return 0;
    return graph_make(&graph->exec, launches_of, &graph->batch, status);
}

int
batch_graph_open(struct batch_graph **opened, const struct device_batch *batch, struct status *status)
{
    *opened = NULL;
    struct device_scope scope;
    if (device_enter(&scope, batch->device, status) < 0)
        return -1;
    int result = -1;
    struct batch_graph *graph = malloc(sizeof *graph);
    if (!graph) {
        status_set(status, STATUS_MEMORY, "there is no memory for a plan");
        goto done;
    }
    *graph = (struct batch_graph){.batch = *batch};
    if (make_graph(graph, status) < 0) {
        free(graph);
        goto done;
    }
    pthread_mutex_init(&graph->lock, NULL);
    *opened = graph;
    result = 0;
done:
    device_leave(&scope);
    return result;
}

static int
add_in_capture(const struct batch_graph *graph, struct status *status)
{
    struct device_batch batch = graph->batch;
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

int
batch_graph_run(struct batch_graph *graph, struct status *status)
{
    struct device_scope scope;
    if (graph->batch.count == 0)
        return 0;
    if (device_enter(&scope, graph->batch.device, status) < 0)
        return -1;
    bool captures;
    int result = stream_captures(graph->batch.stream, &captures, status);
    if (result == 0 && captures)
        result = add_in_capture(graph, status);
    else if (result == 0 && !graph->exec)
        result = device_add_many(&graph->batch, status);
    else if (result == 0) {
        pthread_mutex_lock(&graph->lock);
        result = batch_queue(&scope, &graph->batch, graph->exec, status);
        pthread_mutex_unlock(&graph->lock);
    }
    device_leave(&scope);
    return result;
}

void
batch_graph_close(struct batch_graph *graph)
{
    struct device_scope scope;
    if (!graph)
        return;
    if (graph->exec && runtime_cuda_usable() && device_enter_to_release(&scope, graph->batch.device)) {
        add_graph_free(graph->exec);
        device_leave(&scope);
    }
    free(graph);
}
