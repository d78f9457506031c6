/* The ways to run a short job whose workers sleep, and which of them is quickest on this machine: estimated at first,
 * then known from the calls themselves, what a wake cost and how long each way took. Any thread may call these; they
 * take no lock, and an update that is lost does no harm. */
#ifndef VECADD_HOST_WAYS_H
#define VECADD_HOST_WAYS_H

#include <stdbool.h>
#include <stddef.h>

enum way {
    WAY_ALONE,     /* by the caller, with ordinary stores */
    WAY_STREAMING, /* by the caller, with streaming stores */
    WAY_WOKEN,     /* by the caller and workers that it wakes, with ordinary stores or the only ones that they have, */
    WAY_WOKEN_STREAMING, /* or with streaming stores */
    WAYS,
};

struct ways_job {
    size_t bytes;      /* that it writes */
    size_t l2;         /* bytes of the cache that each processor has for itself */
    int awake;         /* workers that take part anyway */
    int asleep;        /* that could */
    bool rested;       /* no job for long: processors sleep deeply, and caches hold other data */
    bool streams;      /* WAY_STREAMING is possible */
    bool woken_stream; /* WAY_WOKEN_STREAMING is possible, */
    bool stream_first; /* and is taken as long as WAY_WOKEN is not known to be quicker */
};

/* The quickest way, or now and then another that may be quicker. *sleepers: how many to wake for WAY_WOKEN. */
enum way ways_choose(const struct ways_job *job, int *sleepers);

/* The job took so long that way, and no worker was awake. */
void ways_note_job(const struct ways_job *job, enum way way, long long ns);

/* So many wakes held up their caller for `ns`. */
void ways_note_calls(int wakes, long long ns);

/* A worker came so long after its wake. */
void ways_note_late(long long ns);

/* Forgets all that was noted: for tests. */
void ways_forget(void);

#endif
