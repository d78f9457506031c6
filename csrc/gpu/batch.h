/* Many independent additions as one piece of work: one launch on a device. */
#ifndef VECADD_GPU_BATCH_H
#define VECADD_GPU_BATCH_H

#include <stdbool.h>
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

/* Queues the additions, all of one device, in as few launches as their table allows: 1023 a launch, of 128 MiB at most.
 * If it fails, no part of them is left queued, since the caller may then free their memory. Returns 0, or -1 with
 * *status set. */
int device_add_batch(const struct device_batch *batch, struct status *status);

#endif
