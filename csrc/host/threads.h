/* The host's own small pool of threads: an OpenMP runtime hangs a forked child, and starting threads costs 30 us each.
 *
 * A worker spins for 50 us after a job and then sleeps: a burst of jobs finds it awake, and that is all the processor
 * time that it ever burns. Blocks are handed out dynamically, so that one slow core does not hold up the rest, and the
 * caller begins at once: it never waits for a worker that has not begun. A pool that is busy with another caller's job
 * leaves the work to the calling thread; a forked child starts a pool of its own. */
#ifndef VECADD_HOST_THREADS_H
#define VECADD_HOST_THREADS_H

#include <stdbool.h>
#include <stddef.h>

#include "host/threads_count.h"

/* Works on [begin, end) of the job; called from several threads at once. `worker` is 0 for the caller, then 1, 2, ...
 */
typedef void threads_body(void *context, size_t begin, size_t end, int worker);

/* Runs body over [0, n) in blocks of `block`, on at most `threads` threads including the caller, and returns when all
 * is done. Every worker takes the caller's floating-point control bits. Returns the floating-point flags (fpenv.h) that
 * any of them raised; the caller's own environment is left as it was. Never fails: threads that cannot be had are done
 * without. */
unsigned threads_run(int threads, size_t n, size_t block, threads_body *body, void *context);

/* The same for a job that is done before a sleeping worker could have been woken for it: only workers that still spin
 * after an earlier job take part. Where none does, the caller does `alone` over [0, n) at once, unless short jobs have
 * followed each other closely for 0.2 ms: then workers are woken, for the rest of the burst. */
unsigned threads_run_short(int threads, size_t n, size_t block, threads_body *body, threads_body *alone, void *context);

/* Joins the workers; the next threads_run starts new ones. For the end of the process and for tests. */
void threads_stop(void);

#endif
