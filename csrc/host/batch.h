/* Many independent additions as one job of the thread pool. */
#ifndef VECADD_HOST_BATCH_H
#define VECADD_HOST_BATCH_H

#include <stddef.h>

#include "base/plan.h"
#include "base/status.h"
#include "host/add.h"

/* The schedule for a batch whose sums have `bytes` bytes in all. */
struct host_schedule host_add_batch_schedule(size_t bytes);

/* Runs the additions; *flags gets the floating-point flags that any of them raised (fpenv.h). Returns 0, or -1 if there
 * is no memory for a table of one number per addition. */
int host_add_batch(const struct host_simd *simd, const struct host_schedule *schedule, const struct batch_add *adds,
                   size_t count, unsigned *flags, struct status *status);

#endif
