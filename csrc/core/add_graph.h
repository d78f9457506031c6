/* An addition as a CUDA graph of one kernel: launched unchanged it costs the host half of what a kernel does, 1.4
 * to 2.0 us against 3.7 to 4.1 on an H200 machine. */
#ifndef VECADD_ADD_GRAPH_H
#define VECADD_ADD_GRAPH_H

#include <cuda_runtime_api.h>

#include "kernels.h"
#include "status.h"

/* Makes the graph of this call, for any stream of the current device; call->stream is not looked at, nothing of the
 * graph has run, and the caller frees it. Launches of one graph are never concurrent: each comes after the one before,
 * and two threads may not launch it at once. Not to be made while a stream captures in global mode. Returns 0, or -1
 * with *status set and *graph NULL. */
int add_graph_make(cudaGraphExec_t *graph, const struct add_call *call, struct status *status);

/* Queues kernels on the stream, which captures: no other call is made. */
typedef cudaError_t graph_launches(const void *context, cudaStream_t stream);

/* The same of whatever `launches` queues. */
int graph_make(cudaGraphExec_t *graph, graph_launches *launches, const void *context, struct status *status);

/* Launches that were made go on. Takes NULL; never fails. */
void add_graph_free(cudaGraphExec_t graph);

#endif
