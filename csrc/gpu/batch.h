/* Many independent additions as one piece of work: one launch on a device, one job of the threads on the host.
 *
 * batch.c is the device's half, which no_cuda.c stands in for; batch_host.c the host's. */
#ifndef VECADD_GPU_BATCH_H
#define VECADD_GPU_BATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/status.h"
#include "host/add.h"

/* c = a + b over n lanes. c may be a or b; it overlaps neither in part, nor an operand of another addition. */
struct batch_add {
    const void *a, *b;
    void *c;
    size_t n;
    enum lane lane;
};

struct device_batch {
    const struct batch_add *adds;
    size_t count;
    int device;
    void *stream;
    void *const *join; /* the operands' other streams, each once: as those of struct plan */
    size_t joins;
};

/* Queues the additions, all of one device, in as few launches as their table allows: 1023 a launch, of 128 MiB at most.
 * No partial set of them is left queued when it fails, for whose memory could be freed meanwhile. Returns 0, or -1 with
 * *status set. */
int device_add_many(const struct device_batch *batch, struct status *status);

/* How additions of so many bytes of sums together are run on the host. */
struct host_schedule host_add_many_schedule(size_t bytes);

/* Adds in host memory; *flags gets the floating-point flags that any of them raised (fpenv.h). Returns 0, or -1 where
 * there is no memory for a number each. */
int host_add_many(const struct host_simd *simd, const struct host_schedule *schedule, const struct batch_add *adds,
                  size_t count, unsigned *flags, struct status *status);

#endif
