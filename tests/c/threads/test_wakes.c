/* The host's threads sleep on futexes, whose waits may end without a wake: by a signal, or for no reason. This file's
 * syscall() replaces the C library's, so that waits can be made to end early; all else goes to the kernel. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>

#include "base/machine.h"
#include "host/threads.h"
#include "jobs.h"
#include "tests.h"

enum { EVERY_WAIT = 1, ARGUMENTS = 6 };

static atomic_uint early;            /* one wait in that many ends at once; 0: none */
static atomic_int ended_early, real; /* waits */
static _Thread_local unsigned waits;

/* A call of the kernel's has six arguments at most; what the caller did not give, it does not read. */
long
syscall(long number, ...)
{
    long argument[ARGUMENTS];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < ARGUMENTS; i++)
        argument[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_futex && argument[1] == FUTEX_WAIT_PRIVATE) {
        static const int errors[] = {0, EINTR, EAGAIN};
        const unsigned share = atomic_load(&early);
        if (share && ++waits % share == 0) {
            atomic_fetch_add(&ended_early, 1);
            errno = errors[waits / share % 3];
            return errno ? -1 : 0;
        }
        atomic_fetch_add(&real, 1);
    }
    long (*const real_syscall)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return real_syscall(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
}

/* ---- signals */

enum { BLOCKS = 8, SIGNALS = 50 };

struct signalled {
    pthread_t caller;
    atomic_int done; /* blocks */
    atomic_bool begun;
};

static atomic_int signals_seen;

static void
see_signal(int number)
{
    (void)number;
    atomic_fetch_add(&signals_seen, 1);
}

/* Worker 1 has one block, and sends the caller signals for 20 ms. The caller begins no block before, and has nothing
 * left to do but to wait for that one. */
static void
signal_the_caller(void *context, size_t begin, size_t end, int worker)
{
    struct signalled *signalled = context;
    (void)begin, (void)end;
    if (worker == 1 && !atomic_exchange(&signalled->begun, true))
        for (int i = 0; i < SIGNALS; i++) {
            sleep_us(400);
            pthread_kill(signalled->caller, SIGUSR1);
        }
    for (int i = 0; i < 100000 && !atomic_load(&signalled->begun); i++)
        sleep_us(100);
    atomic_fetch_add(&signalled->done, 1);
}

TEST(a_caller_that_signals_wake_waits_on_for_its_workers)
{
    const struct sigaction no_restart = {.sa_handler = see_signal};
    CHECK(sigaction(SIGUSR1, &no_restart, NULL) == 0);
    for (int i = 0; i < 10; i++) {
        struct signalled signalled = {.caller = pthread_self()};
        threads_run_all(2, BLOCKS, 1, signal_the_caller, &signalled);
        CHECK(atomic_load(&signalled.done) == BLOCKS, "returned after %d blocks", atomic_load(&signalled.done));
        threads_stop(); /* a worker that is still in its block ends it before `signalled` is gone */
    }
    CHECK(atomic_load(&signals_seen) > 10, "%d", atomic_load(&signals_seen));
    CHECK(atomic_load(&real) > 0, "no thread slept");
}

/* ---- waits that end for no reason */

enum { INDICES = 300, THREADS = 4 };

struct stays {
    atomic_int count[INDICES];
    atomic_bool over;
    atomic_int late; /* blocks that began after their job had ended */
};

static void
stay(void *context, size_t begin, size_t end, int worker)
{
    struct stays *stays = context;
    (void)worker;
    if (atomic_load(&stays->over))
        atomic_fetch_add(&stays->late, 1);
    for (size_t i = begin; i < end; i++)
        atomic_fetch_add(&stays->count[i], 1);
    if (begin % 16 == 0)
        sleep_us(100);
}

/* Jobs one after the other, with pauses in which workers fall asleep. */
static void
run_jobs(int jobs)
{
    static struct stays stays; /* not on the stack: a worker that is late would write there */
    for (int job = 0; job < jobs; job++) {
        for (int i = 0; i < INDICES; i++)
            atomic_store(&stays.count[i], 0);
        atomic_store(&stays.over, false);
        threads_run_all(THREADS, INDICES, 1, stay, &stays);
        atomic_store(&stays.over, true);
        if (job % 3 == 0)
            sleep_us(300);
        bool once = true;
        for (int i = 0; i < INDICES; i++)
            once = once && atomic_load(&stays.count[i]) == 1;
        CHECK(once, "job %d", job);
    }
    CHECK(atomic_load(&stays.late) == 0, "%d", atomic_load(&stays.late));
}

TEST(jobs_are_done_once_where_waits_end_for_no_reason)
{
    enum { JOBS = 40, MOST_JOBS = 100 * JOBS }; /* workers that have no processor wait seldom */
    static const unsigned shares[] = {EVERY_WAIT, 2, 3, 7};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        atomic_store(&early, shares[i]);
        atomic_store(&ended_early, 0);
        for (int jobs = 0; jobs < JOBS || (jobs < MOST_JOBS && atomic_load(&ended_early) == 0); jobs += JOBS)
            run_jobs(JOBS);
        CHECK(atomic_load(&ended_early) > 0);
        CHECK(all_threads_take_part(THREADS));
    }
}

static void
mark(void *context, size_t begin, size_t end, int worker)
{
    (void)begin, (void)end;
    sleep_us(100);
    atomic_fetch_or((atomic_uint *)context, 1u << worker);
}

/* Ends for both threads of a job at once, so that the worker still spins when its caller has returned. */
static void
meet(void *context, size_t begin, size_t end, int worker)
{
    atomic_uint *present = context;
    (void)begin, (void)end;
    atomic_fetch_or(present, 1u << worker);
    for (int i = 0; i < 10000 && atomic_load(present) != 3; i++)
        sched_yield();
}

enum { ALONE = 1 << 16 }; /* added by each job that its caller does alone */

static void
mark_alone(void *context)
{
    atomic_fetch_add((atomic_uint *)context, ALONE);
}

static void
mark_nothing(void *context)
{
    (void)context;
}

static unsigned
workers_of_a_short_job(void)
{
    atomic_uint workers = 0;
    run_short(2, 8, mark, mark_alone, &workers);
    return atomic_load(&workers);
}

/* Short jobs go to the workers that are awake, and are the caller's alone where none is. */
TEST(workers_that_woke_for_nothing_are_counted_right)
{
    atomic_store(&early, 2);
    run_jobs(20);
    atomic_store(&early, 0);
    run_jobs(1);
    CHECK(all_workers_fall_asleep());
    CHECK(workers_of_a_short_job() == ALONE, "all sleep");

    struct roll_call call = {.threads = 2};
    for (int i = 0; i < 1000000 && atomic_load(&call.present) == 0; i++)
        run_short(2, 2, answer, mark_nothing, &call);
    CHECK(are_all_present(&call), "a burst wakes one");

    unsigned seen = 0;
    for (int i = 0; i < 5000 && !(seen & 2); i++) {
        atomic_uint present = 0;
        threads_run_all(2, 2, 1, meet, &present);
        seen |= workers_of_a_short_job();
    }
    CHECK(seen & 2 || cpus_usable() < 2, "one that spins takes part");
}

TEST(workers_end_where_waits_end_for_no_reason)
{
    atomic_store(&early, EVERY_WAIT);
    for (int i = 0; i < 10; i++) {
        run_jobs(2);
        threads_stop();
    }
    CHECK(atomic_load(&ended_early) > 0);
}
