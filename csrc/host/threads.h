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

enum { THREADS_MAX = 256 };

/* Does [begin, end) of a job, as one of its threads: the caller is number 0. */
typedef void threads_body(void *context, size_t begin, size_t end, int thread);

struct threads_job {
    int threads; /* at most, the caller included */
    size_t n, block;
    threads_body *body;
    void *context;
    bool wakes; /* wakes sleeping workers and starts missing ones; otherwise only workers that still spin take part */
    bool stays_in_slice; /* a thread that is done helps with no slice that another thread has begun, unless that
                          * thread is very late: for data in the threads' caches */
    size_t bytes;        /* that it writes: more start more workers */
    const struct fallback_loop *fallback; /* NULL, or the loop for the whole job if no worker takes part */
};

/* Runs the job's body over [0, n) in blocks and returns when all is done. Workers use the caller's floating-point
 * control bits. Returns the floating-point flags (fpenv.h) that any thread raised, and leaves the caller's environment
 * unchanged. Never fails: if threads cannot be started, fewer run the job. */
unsigned threads_run(const struct threads_job *job);

/* threads_run on at most `threads` threads, all of which are woken. */
static inline unsigned
threads_run_all(int threads, size_t n, size_t block, threads_body *body, void *context)
{
    return threads_run(&(struct threads_job){.threads = threads,
                                             .n = n,
                                             .block = block,
                                             .body = body,
                                             .context = context,
                                             .wakes = true,
                                             .bytes = (size_t)-1});
}

/* Joins the workers; the next threads_run starts new ones. For the end of the process and for tests. */
void threads_stop(void);

/* A sleeping worker calls `work` every `seconds` as long as that returns true, and again after each job. Call this from
 * a constructor, before there is a thread. */
void threads_when_idle(bool (*work)(void), int seconds);

/* How many workers spin or work now. */
int threads_awake(void);

/* The threads that a job may use: threads_choose()'s, or threads_usual(). One processor is looked at again each time.
 */
int threads_available(void);

/* VECADD_NUM_THREADS, or min(affinity mask, control group's cpu quota); 1 to THREADS_MAX. */
int threads_usual(void);

/* Has jobs from now on use `count` threads, 1 to THREADS_MAX, in every thread and in children that are forked from now
 * on. Returns the number so far. */
int threads_choose(int count);

/* The environment's variable, and its text if it is set and is no number from 1 to THREADS_MAX; else NULL. */
#define THREADS_VARIABLE "VECADD_NUM_THREADS"
const char *threads_invalid_variable(void);

/* cpus_usable(), remembered until threads_count_forget(). */
int threads_usable_cpus(void);

/* Forgets what was counted, not what was chosen: a forked child may have other limits, a caller another mask. */
void threads_count_forget(void);

#endif
