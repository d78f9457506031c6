/* vecadd's own small thread pool: an OpenMP runtime hangs in a forked child, and starting threads costs 30 us each.
 *
 * A worker spins for 50 us after a job and then sleeps: a burst of jobs finds it awake, and it wastes no other
 * processor time. Threads take blocks dynamically, so that one slow core does not hold up the rest. The caller never
 * waits for a worker that has not begun. If the pool is busy with another caller's job, the calling thread works alone;
 * a forked child starts a pool of its own. */
#ifndef VECADD_HOST_THREADS_H
#define VECADD_HOST_THREADS_H

#include <stdbool.h>
#include <stddef.h>

#include "host/threads_count.h"

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
     * for so many bytes is taken (stores.h). */
    threads_body *ordinary;
    size_t bytes; /* that the job writes; 0: sleeping workers are woken in bursts only */
    bool keeps;   /* a thread that is done helps with no slice that another has begun, unless that one is very late:
                   * for data that lies in the threads' caches */
};

/* Runs the job and returns when all is done. Workers use the caller's floating-point control bits. Returns the
 * floating-point flags (fpenv.h) that any thread raised, and leaves the caller's environment unchanged. Never fails: if
 * threads cannot be started, fewer run the job. */
unsigned threads_run_job(const struct threads_job *job);

/* The same for body over [0, n) in blocks of `block` on at most `threads` threads, all of which are woken. */
static inline unsigned
threads_run(int threads, size_t n, size_t block, threads_body *body, void *context)
{
    const struct threads_job job = {.threads = threads, .n = n, .block = block, .body = body, .context = context};
    return threads_run_job(&job);
}

/* Joins the workers; the next threads_run starts new ones. For the end of the process and for tests. */
void threads_stop(void);

#endif
