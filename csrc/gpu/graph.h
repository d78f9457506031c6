/* Additions on a device that are made again and again: their launches as a CUDA graph, captured once and launched
 * unchanged. That costs the host half of what launching a kernel does, 1.4 to 2.0 us against 3.7 to 4.1 on an H200
 * machine. */
#ifndef VECADD_GPU_GRAPH_H
#define VECADD_GPU_GRAPH_H

#include "base/plan.h"
#include "base/status.h"
#include "gpu/batch.h"

struct graph;

/* Prepares a plan of ROUTE_DEVICE, or a batch with all that it points to; the memory of the operands and the streams
 * have to stay as long as it is run. The caller closes it. Returns 0, or -1 with *status set and *graph NULL. */
int graph_of_plan(struct graph **graph, const struct plan *plan, struct status *status);
int graph_of_batch(struct graph **graph, const struct device_batch *batch, struct status *status);

/* Queues it as device_add or device_add_batch does, behind its own earlier runs; from any thread: where another one
 * launches the graph at the moment, the kernels are launched. Waits while the stream's queue is full. A graph is no
 * part of a capture: where the stream captures, the kernels are launched, ordered with those of the operands' other
 * streams that capture too. Returns 0, or -1 with *status set. */
int graph_run(struct graph *graph, struct status *status);

/* What is queued goes on. For destructors: never fails, makes no CUDA call in a forked child or after the runtime has
 * shut down, and takes NULL. */
void graph_close(struct graph *graph);

#endif
