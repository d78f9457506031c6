/* vecadd's own small thread pool: an OpenMP runtime hangs in a forked child, and starting threads costs 30 us each.
 *
 * A worker spins for 50 us after a job and then sleeps: a burst of jobs finds it awake, and it wastes no other
 * processor time. Threads take blocks dynamically, so that one slow core does not hold up the rest. The caller begins
 * at once and never waits for a worker that has not begun. If the pool is busy with another caller's job, the calling
 * thread works alone; a forked child starts a pool of its own. */
#ifndef VECADD_HOST_THREADS_H
#define VECADD_HOST_THREADS_H

#include <stdbool.h>
#include <stddef.h>

#include "host/threads_count.h"

/* Works on [begin, end) of the job; called from several threads at once. `worker` is 0 for the caller, then 1, 2, ...
 */
typedef void threads_body(void *context, size_t begin, size_t end, int worker);

/* Runs body over [0, n) in blocks of `block`, on at most `threads` threads including the caller, and returns when all
 * is done. Workers use the caller's floating-point control bits. Returns the floating-point flags (fpenv.h) that any
 * thread raised, and leaves the caller's environment unchanged. Never fails: if threads cannot be started, fewer run
 * the job. */
unsigned threads_run(int threads, size_t n, size_t block, threads_body *body, void *context);

/* threads_run for jobs shorter than a worker's wake-up: only workers that still spin after an earlier job take part. If
 * none spins, the caller runs `alone` over [0, n) in one call. But once a burst of short jobs has lasted 0.2 ms,
 * workers are woken, for the rest of the burst. */
unsigned threads_run_short(int threads, size_t n, size_t block, threads_body *body, threads_body *alone, void *context);

/* Joins the workers; the next threads_run starts new ones. For the end of the process and for tests. */
void threads_stop(void);

#endif
