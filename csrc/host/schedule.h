/* How the host runs an addition: instruction set, threads, blocks, stores. Decided here, once; nothing below decides
 * again. */
#ifndef VECADD_HOST_SCHEDULE_H
#define VECADD_HOST_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/plan.h"
#include "base/status.h"
#include "host/simd.h"

/* From which sizes on the host uses threads, streaming stores and short vectors: bytes of the sum. */
struct host_thresholds {
    size_t awake;           /* workers that still spin after an earlier sum take part */
    size_t wake;            /* sleeping workers are woken */
    size_t stream_alone;    /* one thread uses streaming stores: a third of the three arrays' bytes */
    size_t stream_together; /* several threads do, likewise */
    size_t moved_alone;     /* one thread streams a sum that is not where one of the last few was; SIZE_MAX: never */
    size_t moved;           /* several threads do */
    size_t cached;          /* less stays in the threads' own caches, likewise */
    size_t narrow;          /* the shorter vectors are used, where there is a choice; SIZE_MAX: never */
    size_t least;           /* the smallest that brings threads or streaming stores */
};

/* Determined on the first call, constant after that. */
const struct host_thresholds *host_thresholds(void);

/* The text of VECADD_WAKE_BYTES where it is no number of bytes, and so is ignored; else NULL. */
#define WAKE_VARIABLE "VECADD_WAKE_BYTES"
const char *host_invalid_wake_variable(void);

/* What an addition asks of the host. */
struct host_request {
    enum component component;
    size_t n;        /* components of the sum */
    size_t moved;    /* bytes of the three arrays, repeated elements counted once: those stay in a cache */
    size_t unit;     /* components that stay together: schedule.block counts units */
    bool in_place;   /* c is a or b */
    bool short_rows; /* rows so short that a streaming store would often write part of a cache line */
    const void *c;   /* where the sum is written, now and once; NULL: elsewhere or again, or not known */
    const struct fallback_loop *below; /* NULL, or who adds alone where one thread of ours is no faster. Borrowed */

    /* What is not left to the size, as the ladder's rungs compare it. */
    int threads; /* that share the sum, all of them woken; 0: by size */
    enum { STORES_BY_SIZE, STORES_ORDINARY, STORES_STREAMING } stores; /* if `threads` is given */
    size_t block;                                                      /* bytes of the sum; 0: by size */
};

/* Returns 0; or -1 with *status set, where VECADD_SIMD names no level. */
int host_schedule(struct host_schedule *schedule, const struct host_request *request, struct status *status);

/* The SIMD levels of this build, best first, NULL at the end. */
extern const struct host_simd *const host_simd_levels[];

/* The best supported level, or the level that VECADD_SIMD names; an unknown or unsupported name is an error that lists
 * the levels that work. Chosen once per process, on the first call. */
const struct host_simd *host_simd_chosen(struct status *status);

enum { THREADS_MAX = 256 };

/* The threads that a job may use: threads_choose()'s, or threads_usual(). One processor is looked at again each time.
 */
int threads_available(void);

/* VECADD_NUM_THREADS, or min(affinity mask, control group's cpu quota); 1 to THREADS_MAX. */
int threads_usual(void);

/* Has jobs from now on use `count` threads, 1 to THREADS_MAX, in every thread and in children that are forked from now
 * on. Returns the number so far. */
int threads_choose(int count);

/* The environment's variable, and its text if it is set and is no number from 1 to THREADS_MAX; else NULL. */
#define THREADS_VARIABLE "VECADD_NUM_THREADS"
const char *threads_invalid_variable(void);

/* cpus_usable(), remembered until threads_count_forget(). */
int processors_usable(void);

/* Forgets what was counted, not what was chosen: a forked child may have other limits, a caller another mask. */
void threads_count_forget(void);

/* Bytes of the data cache of that level, 1 to 3; 0 if unknown. */
size_t host_cache_bytes(int level);

#endif
