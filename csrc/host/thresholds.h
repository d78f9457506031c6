/* From which sizes the host adds by threads and by streaming stores: what `vecadd tune host` has measured on this
 * machine, or what was never slower than one thread with ordinary stores on the machines that were measured. */
#ifndef VECADD_HOST_THRESHOLDS_H
#define VECADD_HOST_THRESHOLDS_H

#include <stdbool.h>
#include <stddef.h>

/* Sizes are bytes of the sum, those of streaming a third of the three arrays'; HOST_NEVER and more: at no size. */
struct host_thresholds {
    size_t threads_awake;     /* workers that still spin after an earlier sum take part */
    size_t threads_asleep;    /* sleeping workers are woken */
    size_t stream_alone;      /* one thread writes by streaming stores */
    size_t stream_together;   /* several do */
    size_t share;             /* bytes that each thread has at least where there are more than two */
    size_t block;             /* the largest block that a thread takes at a time, a power of two */
    size_t narrow;            /* where there is a choice, the shorter vectors are taken */
    size_t threads_streaming; /* at most, where several stream: fewer than all may fill the memory */
    bool tuned;               /* read from a file of `vecadd tune host` */
};

/* 2^60: exact as the double that a tuned file's numbers are. */
#define HOST_NEVER ((size_t)1 << 60)

/* Found on the first call, the same for the rest of the process; never NULL. The first call opens files. */
const struct host_thresholds *host_thresholds(void);

enum { HOST_KEY = 160 }; /* bytes that a key takes at most */

/* The key of this host's tuned file: "MODEL, N threads", N as threads_available() has it. */
void host_key(char *key, size_t size);

#endif
