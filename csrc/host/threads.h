/* vecadd's own small thread pool: an OpenMP runtime hangs in a forked child, and starting threads costs 30 us each.
 *
 * A worker spins for 50 us after a job and then sleeps: a burst of jobs finds it awake, and it wastes no other
 * processor time. Threads take blocks dynamically, so that one slow core does not delay the rest. The caller never
 * waits for a worker that has not begun. If the pool is busy with another caller's job, the calling thread works alone;
 * a forked child starts a pool of its own. */
#ifndef VECADD_HOST_THREADS_H
#define VECADD_HOST_THREADS_H

#include <stdbool.h>
#include <stddef.h>

struct fallback_loop;
struct host_schedule;

/* Does [begin, end) of a job, as one of its threads: the caller is number 0. */
typedef void threads_body(void *context, size_t begin, size_t end, int thread);

/* Runs body over [0, n), in the schedule's blocks on its threads, and returns when all is done. Where no worker takes
 * part, the caller adds alone: by `fallback`, or if that is NULL by one call of the body. Workers use the caller's
 * floating-point control bits. Returns the floating-point flags (fpenv.h) that any thread raised, and leaves the
 * caller's environment unchanged. Never fails: if threads cannot be started, fewer run the job. */
unsigned threads_run(const struct host_schedule *schedule, size_t n, threads_body *body, void *context,
                     const struct fallback_loop *fallback);

/* threads_run on at most `threads` threads, all of which are woken. */
unsigned threads_run_all(int threads, size_t n, size_t block, threads_body *body, void *context);

/* Joins the workers; the next threads_run starts new ones. For the end of the process and for tests. */
void threads_stop(void);

/* A sleeping worker calls `work` every `seconds` as long as that returns true, and again after each job. Call this from
 * a constructor, before there is a thread. */
void threads_when_idle(bool (*work)(void), int seconds);

/* How many workers spin or work now. */
int threads_awake(void);

#endif
