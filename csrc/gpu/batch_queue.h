/* What batch_graph.c needs of batch.c: a batch's launches alone, and those launches or their graph between the
 * joins. */
#ifndef VECADD_GPU_BATCH_QUEUE_H
#define VECADD_GPU_BATCH_QUEUE_H

#include "gpu/state.h"

struct device_batch;

/* Queues the launches alone on a stream of the current device; *queued says whether any launch was queued. */
cudaError_t batch_launch_all(const struct device_batch *batch, cudaStream_t stream, bool *queued);

/* Queues the joins and the launches, or their graph where it is not NULL. Returns 0, or -1 with *status set. */
int batch_queue(const struct device_scope *scope, const struct device_batch *batch, cudaGraphExec_t graph,
                struct status *status);

#endif
