/* A job for several threads (threads.h). */
#ifndef VECADD_HOST_THREADS_JOB_H
#define VECADD_HOST_THREADS_JOB_H

#include <stdbool.h>
#include <stddef.h>

/* Works on [begin, end) of the job; called from several threads at once. `worker` is 0 for the caller, then 1, 2, ...
 */
typedef void threads_body(void *context, size_t begin, size_t end, int worker);

/* A job, and how its threads go about it. */
struct threads_job {
    int threads; /* at most, the caller included */
    size_t n, block;
    threads_body *body;
    void *context;
    /* `alone` does the whole job on the caller's thread, in one call over [0, n); so does `alone_streaming`, by
     * streaming stores, which may be quicker and may be NULL. The caller uses one of them if no worker takes part.
     * Workers that still spin after an earlier job take part; a single one does where that is quicker
     * (second_thread.h). Sleeping workers are woken where that is the quickest way for so many bytes (ways.h), and
     * once a burst of such jobs has lasted 0.2 ms. Without `alone` every thread is woken. */
    threads_body *alone, *alone_streaming;
    /* `ordinary` is `body` with ordinary stores where that streams; NULL: there is no choice. The one that was quicker
     * for so many bytes is taken (stores.h, ways.h). */
    threads_body *ordinary;
    bool ordinary_again; /* awake threads have a choice for sums that move alone (sum_moves.h): others are `ordinary` */
    const void *sum;     /* where the job writes */
    size_t bytes;        /* that the job writes; 0: sleeping workers are woken in bursts only */
    bool keeps; /* a thread that is done helps with no slice that another has begun, unless that one is very late:
                 * for data that lies in the threads' caches */
};

#endif
