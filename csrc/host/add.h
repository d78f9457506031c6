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
#include "host/threads.h"

/* The SIMD levels of this build, best first, NULL at the end. */
extern const struct host_simd *const host_simd_levels[];

/* The best supported level, or the level that VECADD_SIMD names; an unknown or unsupported name is an error that lists
 * the levels that work. Chosen once per process, on the first call. */
const struct host_simd *host_simd_chosen(struct status *status);

/* The schedule's loop over vectors, with streaming or ordinary stores. */
host_add_function *host_loop(const struct host_simd *simd, const struct host_schedule *schedule,
                             enum component component, bool streaming);

/* The same for an addition of one element to an array (struct host_simd). */
host_add_function *host_loop_with_one(const struct host_simd *simd, const struct host_schedule *schedule,
                                      enum component component, bool streaming);

/* Runs body over [0, n) as the schedule says: on the caller alone, or on its threads. Returns the floating-point flags
 * raised. */
unsigned host_run(const struct host_schedule *schedule, size_t n, size_t bytes, threads_body *body, void *context);

/* Adds n components and returns the floating-point flags raised (fpenv.h). Waits only for its own threads. */
unsigned host_add(const struct host_simd *simd, const struct host_schedule *schedule, enum component component,
                  const void *a, const void *b, void *c, size_t n);

/* The schedule for a batch whose sums have `bytes` bytes in all. */
struct host_schedule host_add_batch_schedule(size_t bytes);

/* Runs the additions; *flags gets the floating-point flags that any of them raised (fpenv.h). Returns 0, or -1 if there
 * is no memory for a table of one number per addition. */
int host_add_batch(const struct host_simd *simd, const struct host_schedule *schedule, const struct batch_add *adds,
                   size_t count, unsigned *flags, struct status *status);

#endif
