/* How long each stage of a latency rung took, by the host's clock. */
#ifndef VECADD_LAB_LADDER_LATENCY_STAGES_H
#define VECADD_LAB_LADDER_LATENCY_STAGES_H

#include <stdbool.h>

struct latency_stages {
    double issue; /* seconds until all is queued; for a graph, of the call that launches it */
    double total; /* seconds until all is done, issue included: what run_rung returns */

    bool graph;         /* whether the rung has a graph; its stages in seconds, not part of total: */
    double capture;     /* capturing all launches into a graph */
    double instantiate; /* instantiating the graph and uploading it to the device, once for all its launches */
    double destroy;
};

#endif
