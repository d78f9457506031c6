/* What graph.c needs of a kind of addition, and the graph alone for code that times its launches. */
#ifndef VECADD_GPU_GRAPH_KIND_H
#define VECADD_GPU_GRAPH_KIND_H

#include <cuda_runtime_api.h>

#include "cuda/kernels.h"
#include "gpu/state.h"

struct graph;

/* `work` is a struct plan or a struct device_batch. */
struct graph_kind {
    size_t size; /* of `work`, which is copied */

    /* Makes the graph by graph_capture; leaves *graph NULL where the work cannot be a graph. */
    int (*capture)(cudaGraphExec_t *graph, const struct device_scope *scope, const void *work, struct status *status);

    /* Queues the graph between the joins of the work's streams. */
    int (*queue)(const struct device_scope *scope, const void *work, cudaGraphExec_t graph, struct status *status);

    /* Whether the work's stream captures, or a stream that it is ordered with and that leads it into a capture. */
    int (*captures)(const void *work, bool *captures, struct status *status);

    /* Does the work without a graph. */
    int (*add)(const void *work, struct status *status);
};

/* graph_of_plan and graph_of_batch, by their kind. */
int graph_open(struct graph **graph, const struct graph_kind *kind, const void *work, int device, void *stream,
               struct status *status);

/* Queues kernels on the stream, which captures, and makes no other call. */
typedef cudaError_t graph_launches(const void *context, cudaStream_t stream);

/* Makes the graph of what `launches` queues, for any stream of the current device. Nothing of it has run, and the
 * caller frees it. Launches of one graph are never concurrent: each runs after the one before, and two threads may not
 * launch it at once. Returns 0, or -1 with *status set and *graph NULL. */
int graph_capture(cudaGraphExec_t *graph, graph_launches *launches, const void *context, struct status *status);

/* graph_capture of one kernel; call->stream is ignored. */
int graph_capture_add(cudaGraphExec_t *graph, const struct add_call *call, struct status *status);

/* Launches already made still run. Takes NULL; never fails. */
void graph_free(cudaGraphExec_t graph);

#endif
