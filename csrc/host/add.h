/* Additions in host memory: SIMD code chosen at run time, several threads, streaming (non-temporal) stores where they
 * pay. */
#ifndef VECADD_HOST_ADD_H
#define VECADD_HOST_ADD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/plan.h"
#include "base/status.h"
#include "host/simd_level.h"
#include "host/threads.h"

/* The SIMD levels of this build, best first, NULL at the end. */
extern const struct host_simd *const host_simd_levels[];

/* The best supported level, or the level that VECADD_SIMD names; an unknown or unsupported name is an error that lists
 * the levels that work. Chosen once per process, on the first call. */
const struct host_simd *host_simd_chosen(struct status *status);

/* The schedule for n components by this machine's thresholds. In place: c is a or b. */
struct host_schedule host_schedule_for(enum component component, size_t n, bool in_place);

/* host_schedule_for for arrays that together have `moved` bytes, repeated elements counted once: those stay in a cache.
 */
struct host_schedule host_schedule_moving(enum component component, size_t n, bool in_place, size_t moved);

/* A schedule with given threads and kind of store that wakes every thread: the benchmark ladder's rungs compare them.
 */
struct host_schedule host_schedule_with(enum component component, size_t n, int threads, bool streaming);

/* The schedule's loop over vectors, with streaming or ordinary stores. */
host_add_function *host_loop(const struct host_simd *simd, const struct host_schedule *schedule,
                             enum component component, bool streaming);

/* The same for an addition of one element to an array (struct host_simd). */
host_add_function *host_loop_with_one(const struct host_simd *simd, const struct host_schedule *schedule,
                                      enum component component, bool streaming);

/* What adds a part of a job, with the schedule's stores and with ordinary ones, and all of it where no worker takes
 * part, with the schedule's stores and with streaming ones. NULL where there is none: `body` and `alone` must be. */
struct host_bodies {
    threads_body *body, *ordinary, *alone, *alone_streaming;
    const void *sum; /* where the job writes */
};

/* Whether several threads have ordinary stores for a sum of so many bytes in the memory of the last one and a choice
 * for others: the caches may not hold a sum that moves, or one after a rest, though its size alone tells nothing
 * against it. Their `body` streams then. */
bool host_ordinary_again(const struct host_schedule *schedule, size_t bytes);

/* Runs the job over [0, n) as the schedule says; it writes so many bytes. Returns the floating-point flags raised. */
unsigned host_run(const struct host_schedule *schedule, size_t n, size_t bytes, const struct host_bodies *bodies,
                  void *context);

/* Adds n components and returns the floating-point flags raised (fpenv.h). Waits only for its own threads. */
unsigned host_add(const struct host_simd *simd, const struct host_schedule *schedule, enum component component,
                  const void *a, const void *b, void *c, size_t n);

#endif
