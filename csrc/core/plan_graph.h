/* A device addition that is made again and again: its graph, checked once and launched unchanged. */
#ifndef VECADD_PLAN_GRAPH_H
#define VECADD_PLAN_GRAPH_H

#include "plan.h"
#include "status.h"

struct plan_graph;

/* Prepares a plan of ROUTE_DEVICE, whose memory and streams must stay as long as it is run. The caller closes it.
 * Returns 0, or -1 with *status set and *graph NULL. */
int plan_graph_open(struct plan_graph **graph, const struct plan *plan, struct status *status);

/* Queues it as device_add does, behind its own earlier runs; from any thread, one at a time: the others wait, so the
 * caller holds no lock. A graph is no part of a capture: where the stream captures, the kernel is launched, ordered
 * with those of the plan's other streams that capture too. Returns 0, or -1 with *status set. */
int plan_graph_run(struct plan_graph *graph, struct status *status);

/* What is queued goes on. For destructors: never fails, makes no CUDA call in a forked child or after the runtime has
 * shut down, and takes NULL. */
void plan_graph_close(struct plan_graph *graph);

#endif
