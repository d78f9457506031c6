/* The sizes from which the host uses threads and streaming stores: measured by `vecadd tune host` on this machine, or
 * defaults that were never slower than one thread with ordinary stores on the measured machines. */
#ifndef VECADD_HOST_THRESHOLDS_H
#define VECADD_HOST_THRESHOLDS_H

#include <stdbool.h>
#include <stddef.h>

/* Sizes are bytes of the sum; for streaming stores, a third of the three arrays' bytes. HOST_NEVER or more: at no size.
 */
struct host_thresholds {
    size_t threads_awake;     /* workers that still spin after an earlier sum take part */
    size_t threads_asleep;    /* sleeping workers are woken */
    size_t stream_alone;      /* one thread uses streaming stores */
    size_t stream_together;   /* several threads use streaming stores */
    size_t spills;            /* several threads that stream no longer try ordinary stores (stores.h) */
    size_t share;             /* the least bytes per thread if there are more than two threads */
    size_t block;             /* the largest block that a thread takes at a time, a power of two */
    size_t narrow;            /* the shorter vectors are used, if there is a choice */
    size_t threads_streaming; /* the most threads that stream: fewer than all may saturate the memory */
    size_t cached;            /* less than this stays in the threads' own caches; as shipped */
    size_t l2;                /* bytes of a processor's own cache; as shipped */
    bool tuned;               /* read from a file of `vecadd tune host` */
    bool learns;              /* sleeping workers are woken for less where that has been quicker (ways.h): unless the
                               * file, one of an earlier version, has threads_asleep */
};

/* 2^60: exact as a double, the type of a tuned file's numbers. */
#define HOST_NEVER ((size_t)1 << 60)

/* Determined on the first call, which opens files, and constant after that; never NULL. */
const struct host_thresholds *host_thresholds(void);

enum { HOST_KEY = 160 }; /* the most bytes of a key */

/* The key of this host's tuned file: "MODEL, N threads", N from threads_usual(). */
void host_key(char *key, size_t size);

#endif
