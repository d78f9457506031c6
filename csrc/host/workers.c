#include "host/workers.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/min_max.h"
#include "base/now.h"
#include "base/signals.h"
#include "host/callers_cpu.h"
#include "host/futex.h"
#include "host/output_pool.h"
#include "host/threads_count.h"
#include "host/threads_job.h"
#include "host/ways.h"

/* Runs the block from `begin` on, and all that are left of the slice. */
static void
run_from(struct thread_pool *pool, struct slice *slice, size_t begin, int part)
{
    const struct threads_job *job = pool->job;
    do
        job->body(job->context, begin, begin + smaller(job->block, slice->end - begin), part);
    while (slice_take(slice, job->block, &begin));
}

/* Every thread begins with its own slice, the same one in every job, so that it finds the last job's data in its cache;
 * then it helps with the other slices, the caller first with that of the worker that was woken last. */
void
workers_run(struct thread_pool *pool, int part, bool keeps)
{
    const int threads = pool->threads;
    const size_t block = pool->job->block;
    size_t begin;
    if (slice_take(&pool->slice[part], block, &begin))
        run_from(pool, &pool->slice[part], begin, part);
    for (int i = 1; i < threads; i++) {
        struct slice *slice = &pool->slice[part ? (part + i) % threads : threads - i];
        if (keeps ? slice_begin(slice, block, &begin) : slice_take(slice, block, &begin))
            run_from(pool, slice, begin, part);
    }
}

/* If all other processors are busy, a worker may wake up on its caller's processor, where spinning would hold up the
 * caller. In bursts of additions of 1 MiB on two cores, one of them busy, that took 50 us of every 250. */
static bool
may_spin(struct thread_pool *pool)
{
    return atomic_load_explicit(&pool->spins, memory_order_relaxed) &&
           sched_getcpu() != atomic_load_explicit(&pool->callers_cpu, memory_order_relaxed);
}

/* The number of a job that is open, that the worker has a part in, and that it has not seen; STOPPING; else NO_JOB. */
static unsigned
called(const struct worker *worker, unsigned seen)
{
    const struct thread_pool *pool = worker->pool;
    const unsigned open = atomic_load(&pool->open);
    if (open == seen || open == NO_JOB)
        return NO_JOB;
    return open == STOPPING || atomic_load_explicit(&pool->part[worker->number], memory_order_relaxed) ? open : NO_JOB;
}

void
workers_note_end(struct thread_pool *pool, long long when)
{
    if (when > atomic_load_explicit(&pool->ended, memory_order_relaxed))
        atomic_store_explicit(&pool->ended, when, memory_order_relaxed);
}

static unsigned
spin_until_called(const struct worker *worker, unsigned seen)
{
    const long long since = now_ns();
    do {
        for (int i = 0; i < PAUSES_A_LOOK_AT_THE_CLOCK; i++) {
            const unsigned number = called(worker, seen);
            if (number != NO_JOB)
                return number;
            pause_briefly();
        }
    } while (may_spin(worker->pool) && now_ns() < since + SPIN_NS);
    workers_note_end(worker->pool, since);
    return NO_JOB;
}

/* Sleeps until a caller wakes the worker. Worker 1 meanwhile gives back memory that no sum uses any more. A job that
 * begins while it does so is not held up: the caller waits for no worker that has not begun. */
static void
sleep_until_woken(struct worker *worker)
{
    while (worker->number == 1 && atomic_load(&worker->state) == ASLEEP && output_pool_age())
        futex_wait_seconds(&worker->state, ASLEEP, OUTPUT_POOL_SECONDS);
    for (unsigned state; (state = atomic_load(&worker->state)) != AWAKE;)
        futex_wait(&worker->state, state);
    ways_note_late(now_ns() - atomic_load_explicit(&worker->woken, memory_order_relaxed));
}

/* Goes to sleep, unless it is called before its next caller can see that it sleeps. */
static unsigned
sleep_until_called(struct worker *worker, unsigned seen)
{
    callers_cpu_allow(&worker->kept_off, pthread_self());
    atomic_store(&worker->state, ASLEEP);
    atomic_fetch_sub(&worker->pool->awake, 1);
    const unsigned number = called(worker, seen);
    unsigned expected = ASLEEP;
    if (number == NO_JOB || !atomic_compare_exchange_strong(&worker->state, &expected, AWAKE))
        sleep_until_woken(worker);
    atomic_fetch_add(&worker->pool->awake, 1);
    return number;
}

/* Returns the number of a job, or STOPPING. */
static unsigned
wait_for_call(struct worker *worker, unsigned seen)
{
    for (;;) {
        unsigned number = spin_until_called(worker, seen);
        if (number == NO_JOB) /* a job that it is woken for may be over: then it spins in case another follows */
            number = sleep_until_called(worker, seen);
        if (number != NO_JOB)
            return number;
    }
}

static void
take_part(struct worker *worker, unsigned number)
{
    struct thread_pool *pool = worker->pool;
    atomic_store(&worker->inside, number);
    const int part = atomic_load(&pool->open) == number ? atomic_load(&pool->part[worker->number]) : 0;
    if (part) {
        fpenv_set(pool->control);
        workers_run(pool, part, pool->keeps);
        const unsigned flags = fpenv_flags(fpenv_get());
        if (flags) /* no write without flags: the cache line would move from worker to worker for nothing */
            atomic_fetch_or(&pool->flags, flags);
    }
    if (atomic_exchange(&worker->inside, NO_JOB) & AWAITED)
        futex_wake(&worker->inside);
}

static void *
worker_main(void *argument)
{
    struct worker *worker = argument;
    worker->id = (pid_t)syscall(SYS_gettid);
    for (unsigned number = NO_JOB; (number = wait_for_call(worker, number)) != STOPPING;)
        take_part(worker, number);
    return NULL;
}

bool
worker_start(struct thread_pool *pool, int number)
{
    struct worker *worker = &pool->worker[number];
    sigset_t before;
    worker->pool = pool;
    worker->number = number;
    atomic_store(&worker->inside, NO_JOB);
    atomic_store(&worker->state, AWAKE);
    atomic_store(&worker->kept_off.is_kept, false);
    signals_block(&before);
    const int error = pthread_create(&worker->thread, NULL, worker_main, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) {
        atomic_fetch_add_explicit(&pool->awake, 1, memory_order_relaxed);
        pthread_setname_np(worker->thread, "vecadd");
    }
    return error == 0;
}

/* `keep_off`: takes the caller's processor out of its mask. Returns whether the worker slept. */
static bool
wake(struct worker *worker, bool keep_off)
{
    unsigned expected = ASLEEP;
    if (!atomic_compare_exchange_strong(&worker->state, &expected, WAKING))
        return false;
    if (keep_off)
        callers_cpu_keep_off(&worker->kept_off, worker->thread,
                             atomic_load_explicit(&worker->pool->callers_cpu, memory_order_relaxed));
    atomic_store_explicit(&worker->woken, now_ns(), memory_order_relaxed);
    atomic_store(&worker->state, AWAKE);
    futex_wake(&worker->state);
    return true;
}

/* The caller wakes them one by one: on sixteen cores, where workers woke each
 * other, a job took 1.2 to 3 times as long. */
void
workers_wake(struct thread_pool *pool)
{
    const long long began = now_ns();
    const bool keep_off = pool->threads == 2 && threads_usable_cpus() == 2;
    int woken = 0;
    for (int i = 1; i <= pool->started; i++)
        if (atomic_load_explicit(&pool->part[i], memory_order_relaxed))
            woken += wake(&pool->worker[i], keep_off);
    if (woken > 0)
        ways_note_calls(woken, now_ns() - began);
}

/* A caller that goes to sleep restores the worker's mask: another program may hold the worker's processor, and the
 * caller's is free now. */
void
worker_wait_until_out(struct worker *worker, unsigned number)
{
    unsigned inside = number;
    if (atomic_load(&worker->inside) != number ||
        !atomic_compare_exchange_strong(&worker->inside, &inside, number | AWAITED))
        return;
    callers_cpu_allow(&worker->kept_off, worker->thread);
    while (atomic_load(&worker->inside) == (number | AWAITED))
        futex_wait(&worker->inside, number | AWAITED);
}

void
workers_follow(struct thread_pool *pool, const cpu_set_t *mask)
{
    for (int i = 1; i <= pool->started; i++) {
        atomic_store(&pool->worker[i].kept_off.is_kept, false);
        pthread_setaffinity_np(pool->worker[i].thread, sizeof *mask, mask);
    }
}

/* A thread that has been joined counts as one of the process until the system is done with it. */
static void
wait_until_gone(pid_t id)
{
    enum { LOOKS = 10000 }; /* a moment is enough; another thread may have got the number */
    for (int i = 0; i < LOOKS && syscall(SYS_tgkill, getpid(), id, 0) == 0; i++)
        sched_yield();
}

void
workers_stop(struct thread_pool *pool)
{
    atomic_store(&pool->open, STOPPING);
    for (int i = 1; i <= pool->started; i++)
        wake(&pool->worker[i], false);
    for (int i = 1; i <= pool->started; i++)
        pthread_join(pool->worker[i].thread, NULL);
    for (int i = 1; i <= pool->started; i++)
        wait_until_gone(pool->worker[i].id);
    pool->started = 0;
    atomic_store(&pool->awake, 0);
    atomic_store(&pool->open, NO_JOB);
}
