/* What the launches of an addition cost a caller in C: the reference for vecadd.add and Plan. */
#ifndef VECADD_LAB_LADDER_RAW_LAUNCH_H
#define VECADD_LAB_LADDER_RAW_LAUNCH_H

#include "base/plan.h"
#include "base/status.h"

enum raw_launch_way {
    RAW_LAUNCH_PLAIN,        /* cudaLaunchKernel */
    RAW_LAUNCH_PROGRAMMATIC, /* cudaLaunchKernelExC with the attribute of a programmatic launch; compute capability 9.0
                              */
    RAW_LAUNCH_GRAPH         /* cudaGraphLaunch of a graph with that kernel alone */
};

/* Queues the plan's kernel `calls` times on its stream and nothing else; the plan is of ROUTE_DEVICE and without joins.
 * The stream is empty before, and drained after. *seconds gets the host's time of one call. Waits: the caller holds no
 * lock. Returns 0, or -1 with *status set. */
int raw_launches(const struct plan *plan, enum raw_launch_way way, int calls, double *seconds, struct status *status);

#endif
