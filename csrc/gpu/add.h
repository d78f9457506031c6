/* Queues additions of device memory: one, or many as one piece of work in few launches. */
#ifndef VECADD_GPU_ADD_H
#define VECADD_GPU_ADD_H

#include <stddef.h>

#include "base/plan.h"
#include "base/status.h"

/* What is queued as one piece: a plan of ROUTE_DEVICE, or a batch, additions on one device. What it points to outlives
 * it. */
struct device_work {
    const struct plan *plan;      /* NULL: a batch */
    const struct batch_add *adds; /* of a batch */
    size_t count;
    int device;
    void *stream;
    void *const *join; /* the operands' other streams, each once, as in struct plan */
    size_t joins;
};

static inline struct device_work
device_work_of(const struct plan *plan)
{
    return (struct device_work){
        .plan = plan, .device = plan->device, .stream = plan->stream, .join = plan->join, .joins = (size_t)plan->joins};
}

/* Queues the joins, the kernels and the joins back. A plan's `out` that partly overlaps an input goes through a
 * stream-ordered temporary. A batch is queued in as few launches as their table allows: 1023 additions a launch, of 128
 * MiB at most. If it fails, no part of the work is left queued, since the caller may then free its memory. Returns 0,
 * or -1 with *status set. */
int device_add(const struct device_work *work, struct status *status);

#endif
