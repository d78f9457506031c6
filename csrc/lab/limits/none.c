/* This folder in a build without CUDA: its functions report that CUDA is missing, or do nothing. */
#include "lab/base/probes.h"

/* The headers name the parameters; these functions read none. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

int
limits_device(int device, size_t bytes, int rounds, struct memory_rates *rates, struct status *status)
{
    return status_no_cuda(status);
}

int
limits_l2(int device, size_t bytes, int rounds, struct memory_rates *rates, struct status *status)
{
    return status_no_cuda(status);
}

int
limits_latency(int device, int rounds, struct memory_latency *latency, struct status *status)
{
    return status_no_cuda(status);
}

int
limits_loaded(int device, size_t bytes, int rounds, struct loaded_latency points[LIMITS_LOADED], struct status *status)
{
    return status_no_cuda(status);
}

int
limits_launch(int device, int rounds, struct launch_limits *limits, struct status *status)
{
    return status_no_cuda(status);
}

int
limits_link(int device, size_t bytes, int rounds, struct link_limits *limits, struct status *status)
{
    return status_no_cuda(status);
}

int
limits_memory(int device, size_t *left, size_t *all, struct status *status)
{
    return status_no_cuda(status);
}

int
limits_pattern_write(int device, void *stream, uint64_t *memory, size_t words, const struct pattern *pattern,
                     double *seconds, struct status *status)
{
    return status_no_cuda(status);
}

int
limits_pattern_check(int device, void *stream, const uint64_t *memory, size_t words, const struct pattern *pattern,
                     struct pattern_found *found, double *seconds, struct status *status)
{
    return status_no_cuda(status);
}

int
limits_peers(int from, int to, size_t bytes, int rounds, struct peer_limits *limits, struct status *status)
{
    return status_no_cuda(status);
}
