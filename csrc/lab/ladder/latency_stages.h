/* How long each stage of a latency rung took, by the host's clock. */
#ifndef VECADD_LAB_LADDER_LATENCY_STAGES_H
#define VECADD_LAB_LADDER_LATENCY_STAGES_H

#include <stdbool.h>

struct latency_stages {
    double issue; /* seconds until all is queued; of a graph, of the call that launches it */
    double total; /* seconds until all is done, issue included: what run_rung gives */

    bool graph;         /* and then, in seconds, outside of total: */
    double capture;     /* every launch, into a graph */
    double instantiate; /* and its upload to the device: what no later launch pays again */
    double destroy;
};

#endif
