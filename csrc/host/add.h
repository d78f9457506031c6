/* Additions in host memory: SIMD code chosen at run time, several threads, streaming (non-temporal) stores where they
 * pay. */
#ifndef VECADD_HOST_ADD_H
#define VECADD_HOST_ADD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/plan.h"
#include "base/status.h"
#include "host/schedule.h"
#include "host/simd.h"

/* The loop over vectors of the schedule's level, with streaming or ordinary stores. */
host_add_function *host_loop(const struct host_schedule *schedule, enum component component, bool streaming);

/* The schedule's loop for an addition of one element to an array (struct host_simd). */
host_add_function *host_loop_with_one(const struct host_schedule *schedule, enum component component);

/* Adds n components and returns the floating-point flags raised (fpenv.h). Waits only for its own threads. */
unsigned host_add(const struct host_schedule *schedule, enum component component, const void *a, const void *b, void *c,
                  size_t n);

/* The schedule of a batch whose sums have `bytes` bytes in all. Returns 0, or -1 with *status set. */
int host_batch_schedule(struct host_schedule *schedule, size_t bytes, struct status *status);

/* Runs the additions; *flags gets the floating-point flags that any of them raised (fpenv.h). Returns 0, or -1 if there
 * is no memory for a table of one number per addition. */
int host_add_batch(const struct host_schedule *schedule, const struct batch_add *adds, size_t count, unsigned *flags,
                   struct status *status);

#endif
