/* How the host runs an addition: threads, blocks, stores. Decided here, once; nothing below decides again. */
#ifndef VECADD_HOST_SCHEDULE_H
#define VECADD_HOST_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/plan.h"

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
};

struct host_schedule host_schedule(const struct host_request *request);

/* host_schedule for contiguous arrays. */
struct host_schedule host_schedule_for(enum component component, size_t n, bool in_place);

/* A schedule with given threads, all of them woken, and given stores: what the ladder's rungs compare. `n` and the
 * block count components. */
struct host_schedule host_schedule_forced(enum component component, size_t n, int threads, bool streaming);

/* Bytes of the data cache of that level, 1 to 3; 0 if unknown. */
size_t host_cache_bytes(int level);

#endif
