/* Queues additions of device memory: one, or many as one piece of work in few launches. */
#ifndef VECADD_GPU_ADD_H
#define VECADD_GPU_ADD_H

#include <stddef.h>

#include "base/plan.h"
#include "base/status.h"

struct device_batch {
    const struct batch_add *adds;
    size_t count;
    int device;
    void *stream;
    void *const *join; /* the operands' other streams, each once, as in struct plan */
    size_t joins;
};

/* Runs ROUTE_DEVICE: queues the joins, plan's kernel and the joins back. An `out` that partly overlaps an input goes
 * through a stream-ordered temporary. */
int device_add(const struct plan *plan, struct status *status);

/* Queues the additions, all of one device, in as few launches as their table allows: 1023 a launch, of 128 MiB at most.
 * If it fails, no part of them is left queued, since the caller may then free their memory. Returns 0, or -1 with
 * *status set. */
int device_add_batch(const struct device_batch *batch, struct status *status);

/* Either of them, as graph.c repeats it. What it points to outlives it. */
struct device_work {
    const struct plan *plan;          /* NULL: a batch */
    const struct device_batch *batch; /* NULL: a plan */
    int device;
    void *stream;
    void *const *join; /* as in struct device_batch */
    size_t joins;
};

static inline struct device_work
device_work_of_plan(const struct plan *plan)
{
    return (struct device_work){plan, NULL, plan->device, plan->stream, plan->join, (size_t)plan->joins};
}

static inline struct device_work
device_work_of_batch(const struct device_batch *batch)
{
    return (struct device_work){NULL, batch, batch->device, batch->stream, batch->join, batch->joins};
}

#endif
