/* Adding host memory: SIMD code chosen at run time, several threads, streaming (non-temporal) stores where they pay. */
#ifndef VECADD_HOST_ADD_H
#define VECADD_HOST_ADD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/status.h"

/* c[i] = a[i] + b[i] for n lanes. a, b, c are aligned to the lane; c may be a or b, but overlap neither in part. */
typedef void host_add_function(const void *a, const void *b, void *c, size_t n);

/* One instruction set. The tables are complete: every lane has both functions. */
struct host_simd {
    const char *name;                      /* "avx512", "avx2", "neon", "c": the values of VECADD_SIMD */
    bool (*supported)(void);               /* by this processor and operating system */
    host_add_function *add[LANE_COUNT];    /* ordinary stores */
    host_add_function *stream[LANE_COUNT]; /* non-temporal stores, fenced; the same as add where there are none */
    const struct host_simd *narrower;      /* vectors of half the length, or NULL */
};

/* The levels, a file each; a build holds those of its processor. */
extern const struct host_simd host_simd_avx512, host_simd_avx2, host_simd_neon, host_simd_c;

/* The levels this build holds, best first, NULL at the end. */
extern const struct host_simd *const host_simd_levels[];

/* The best supported level, or the one VECADD_SIMD names; a name that is unknown or unsupported is an error that lists
 * those that work. Chosen once a process; the first call is not on any hot path. */
const struct host_simd *host_simd_chosen(struct status *status);

/* How one host addition is run; plan.c fills it from n and the machine's thresholds (host_thresholds.h). */
struct host_schedule {
    int threads;          /* at most, the caller among them */
    bool wakes;           /* sleeping workers are woken; else those take part that are awake */
    bool streaming;       /* the stores of several threads */
    bool streaming_alone; /* and of one, where no other takes part */
    bool narrow;          /* by simd->narrower where there is one and the lane gains by it */
    size_t block;         /* lanes a thread takes at a time */
};

/* The schedule for n lanes by this machine's thresholds. In place means that c is a or b. */
struct host_schedule host_schedule_for(enum lane lane, size_t n, bool in_place);

/* The same where the three arrays together have `moved` bytes, each counted once: what is repeated stays in a cache. */
struct host_schedule host_schedule_moving(enum lane lane, size_t n, bool in_place, size_t moved);

/* The same with the threads and the kind of store given, and every thread woken: for the ladder's rungs, which compare
 * them. */
struct host_schedule host_schedule_with(enum lane lane, size_t n, int threads, bool streaming);

/* The loop of a schedule's vectors, with streaming stores or ordinary ones. */
host_add_function *host_loop(const struct host_simd *simd, const struct host_schedule *schedule, enum lane lane,
                             bool streaming);

/* Adds n lanes and returns the floating-point flags raised (fpenv.h). Waits for nothing but its own threads. */
unsigned host_add(const struct host_simd *simd, const struct host_schedule *schedule, enum lane lane, const void *a,
                  const void *b, void *c, size_t n);

/* Cache sizes that the thresholds stand on, in bytes; 0 where the system does not say. */
size_t host_cache_bytes(int level);

#endif
