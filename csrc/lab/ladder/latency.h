/* How long each stage of a latency rung took, by the host's clock. */
#ifndef VECADD_LAB_LADDER_LATENCY_H
#define VECADD_LAB_LADDER_LATENCY_H

#include <stdbool.h>

#include "base/plan.h"
#include "base/status.h"

struct latency_stages {
    double issue; /* seconds until all is queued; for a graph, of the call that launches it */
    double total; /* seconds until all is done, issue included: what run_rung returns */

    bool graph;         /* whether the rung has a graph; its stages in seconds, not part of total: */
    double capture;     /* capturing all launches into a graph */
    double instantiate; /* instantiating the graph and uploading it to the device, once for all its launches */
    double destroy;
};

/* What the launches of an addition cost a caller in C: the reference for vecadd.add and Plan. */
enum raw_launch_way {
    RAW_LAUNCH_PLAIN,        /* cudaLaunchKernel */
    RAW_LAUNCH_PROGRAMMATIC, /* cudaLaunchKernelExC with the attribute of a programmatic launch; compute capability 9.0
                              */
    RAW_LAUNCH_GRAPH         /* cudaGraphLaunch of a graph with that kernel alone */
};

/* Queues the plan's kernel `calls` times on its stream and nothing else; the plan is of ROUTE_DEVICE and without joins.
 * The stream is empty before, and drained after. *seconds gets the host's time of one call. Waits: the caller has no
 * lock. Returns 0, or -1 with *status set. */
int raw_launches(const struct plan *plan, enum raw_launch_way way, int calls, double *seconds, struct status *status);

#endif
