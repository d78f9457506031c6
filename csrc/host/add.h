/* Adding host memory: SIMD code chosen at run time, several threads, streaming (non-temporal) stores where they pay. */
#ifndef VECADD_HOST_ADD_H
#define VECADD_HOST_ADD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/plan.h"
#include "base/status.h"
#include "host/simd_level.h"

/* The levels this build holds, best first, NULL at the end. */
extern const struct host_simd *const host_simd_levels[];

/* The best supported level, or the one VECADD_SIMD names; a name that is unknown or unsupported is an error that lists
 * those that work. Chosen once a process; the first call is not on any hot path. */
const struct host_simd *host_simd_chosen(struct status *status);

/* The schedule for n components by this machine's thresholds. In place means that c is a or b. */
struct host_schedule host_schedule_for(enum component component, size_t n, bool in_place);

/* The same where the three arrays together have `moved` bytes, each counted once: what is repeated stays in a cache. */
struct host_schedule host_schedule_moving(enum component component, size_t n, bool in_place, size_t moved);

/* The same with the threads and the kind of store given, and every thread woken: for the ladder's rungs, which compare
 * them. */
struct host_schedule host_schedule_with(enum component component, size_t n, int threads, bool streaming);

/* The loop of a schedule's vectors, with streaming stores or ordinary ones. */
host_add_function *host_loop(const struct host_simd *simd, const struct host_schedule *schedule,
                             enum component component, bool streaming);

/* Adds n components and returns the floating-point flags raised (fpenv.h). Waits for nothing but its own threads. */
unsigned host_add(const struct host_simd *simd, const struct host_schedule *schedule, enum component component,
                  const void *a, const void *b, void *c, size_t n);

#endif
