/* A clock that the test sets, and a processor for each side, in place of the system's: workers stay awake however busy
 * the machine is, and a job takes what its blocks say. (double_clock goes on each time that a worker looks.) Defines
 * functions of the C library: include it in one file of a program. */
#ifndef VECADD_TEST_SET_CLOCK_H
#define VECADD_TEST_SET_CLOCK_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "check.h"
#include "jobs.h"

static _Thread_local bool is_caller;
static atomic_llong caller_ns, worker_ns;
static atomic_bool workers_tire; /* each look at the clock then finds it a second later */

/* Once, by the thread that calls threads_run. */
static inline void
set_clock(void)
{
    is_caller = true;
}

static inline void
pass_ns(long long ns)
{
    atomic_fetch_add(&caller_ns, ns);
}

/* The workers of a job of `threads` threads are awake after it, until they tire; but where there are fewer processors.
 */
static inline void
wake_workers(int threads)
{
    atomic_store(&workers_tire, false);
    CHECK(all_threads_take_part(threads));
}

int
clock_gettime(clockid_t clock, struct timespec *time)
{
    enum { SECOND = 1000000000 };
    const long long tired = !is_caller && atomic_load(&workers_tire) ? SECOND : 0;
    const long long ns = is_caller ? atomic_load(&caller_ns) : atomic_fetch_add(&worker_ns, tired);
    (void)clock;
    *time = (struct timespec){.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
    return 0;
}

/* A worker on its caller's processor does not spin. */
int
sched_getcpu(void)
{
    return is_caller ? 0 : 1;
}

#endif
