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
#include "host/threads_job.h"

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
