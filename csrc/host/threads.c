#include "host/threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/fpenv.h"
#include "base/runtime.h"
#include "host/futex.h"
#include "host/output_pool.h"
#include "host/threads_count.h"

enum {
    CACHE_LINE = 64,
    /* A burst is a series of short jobs with gaps of at most BURST_GAP_NS. Once it has lasted BURST_NS, its caller
     * wakes workers: the wake costs 2-5 us, a fiftieth of the time that has passed, and saves more if the burst lasts
     * as long again. */
    BURST_GAP_NS = 25000,
    BURST_NS = 200000,
};

/* A worker's state is the futex it sleeps on. The caller moves it from IDLE or ASLEEP to CALLED, and back when no work
 * is left; so the caller never waits for a worker that has not begun. The worker moves CALLED to WORKING and WORKING to
 * IDLE. A caller that tires of spinning on WORKING makes it AWAITED and sleeps on the same futex. */
enum worker_state { IDLE, ASLEEP, CALLED, WORKING, AWAITED, STOPPING };

struct worker {
    alignas(CACHE_LINE) atomic_uint state;
    unsigned state_before_call; /* IDLE or ASLEEP; used by the caller */
    int part;                   /* its number in the job, from 1 on; 0: not called; set by the caller */
    int number;
    struct thread_pool *pool;
    pthread_t thread;
};

/* Every thread begins with its own slice of the job, the same one in every job, so that it finds the last job's data in
 * its cache; then it helps with the other slices. */
struct slice {
    alignas(CACHE_LINE) atomic_size_t next;
    size_t end;
};

struct job {
    threads_body *body;
    void *context;
    size_t block;
    int threads;
    fpenv_word control;
    atomic_uint flags;
    int asleep[THREADS_MAX]; /* sleeping workers of the job; any of its threads wakes them */
    atomic_int asleep_count;
    atomic_int woken;
};

struct thread_pool {
    atomic_bool busy;  /* the thread that set it owns the other fields */
    int started;       /* workers 1 ... started exist; the caller is number 0 */
    atomic_bool spins; /* there is a processor for every thread */

    atomic_int callers_cpu; /* of the last job */

    /* Not owned: any thread uses `awake`, `burst_began` and `short_ended`. */
    alignas(CACHE_LINE) atomic_int awake;  /* workers that spin or work */
    atomic_llong burst_began, short_ended; /* of short jobs that callers ran alone: now_ns() */

    struct job job;
    struct worker worker[THREADS_MAX];
    struct slice slice[THREADS_MAX];
};

/* Every thread wakes two sleepers before each block: a small job ends before it has paid for many wakes, and a large
 * job has all its threads after a few rounds. */
static void
wake_sleepers(struct thread_pool *pool)
{
    struct job *job = &pool->job;
    for (int i = 0; i < 2; i++) {
        int next = atomic_load_explicit(&job->woken, memory_order_relaxed);
        if (next >= atomic_load_explicit(&job->asleep_count, memory_order_acquire))
            return;
        if (atomic_compare_exchange_strong(&job->woken, &next, next + 1))
            futex_wake(&pool->worker[job->asleep[next]].state);
    }
}

static void
work(struct thread_pool *pool, int part)
{
    struct job *job = &pool->job;
    for (int i = 0; i < job->threads; i++) {
        struct slice *slice = &pool->slice[(part + i) % job->threads];
        while (atomic_load_explicit(&slice->next, memory_order_relaxed) < slice->end) {
            wake_sleepers(pool);
            const size_t begin = atomic_fetch_add_explicit(&slice->next, job->block, memory_order_relaxed);
            if (begin >= slice->end)
                break;
            const size_t left = slice->end - begin;
            job->body(job->context, begin, begin + (left < job->block ? left : job->block), part);
        }
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

/* Sleeps until a call. One worker gives memory back meanwhile that no sum uses any more. It is called as ever: a job
 * that begins while it does so is not held up, because the caller waits for no worker that has not begun. */
static void
sleep_until_called(struct worker *worker)
{
    while (worker->number == 1 && output_pool_age())
        if (!futex_wait_seconds(&worker->state, ASLEEP, OUTPUT_POOL_SECONDS))
            return;
    futex_wait(&worker->state, ASLEEP);
}

/* Returns true when the worker has a job, false when it has to end. */
static bool
wait_for_call(struct worker *worker)
{
    for (;;) {
        if (may_spin(worker->pool))
            spin_while(&worker->state, IDLE);
        unsigned state = IDLE;
        if (atomic_compare_exchange_strong(&worker->state, &state, ASLEEP))
            state = ASLEEP;
        if (state == ASLEEP) {
            atomic_fetch_sub_explicit(&worker->pool->awake, 1, memory_order_relaxed);
            sleep_until_called(worker);
            atomic_fetch_add_explicit(&worker->pool->awake, 1, memory_order_relaxed);
            /* The job that it was woken for is over: it spins in case another follows. */
            if (atomic_compare_exchange_strong(&worker->state, &state, IDLE))
                continue;
        }
        if (state == STOPPING)
            return false;
        if (state == CALLED && atomic_compare_exchange_strong(&worker->state, &state, WORKING))
            return true;
    }
}

static void *
worker_main(void *argument)
{
    struct worker *worker = argument;
    struct job *job = &worker->pool->job;
    while (wait_for_call(worker)) {
        fpenv_set(job->control);
        work(worker->pool, worker->part);
        const unsigned flags = fpenv_flags(fpenv_get());
        if (flags) /* no write without flags: the cache line would move from worker to worker for nothing */
            atomic_fetch_or(&job->flags, flags);
        if (atomic_exchange(&worker->state, IDLE) == AWAITED)
            futex_wake(&worker->state);
    }
    return NULL;
}

static bool
start_worker(struct thread_pool *pool, int number)
{
    struct worker *worker = &pool->worker[number];
    sigset_t all, before;
    worker->pool = pool;
    worker->number = number;
    worker->part = 0;
    atomic_store(&worker->state, IDLE);
    sigfillset(&all); /* leave signals to the application's threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&worker->thread, NULL, worker_main, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) {
        atomic_fetch_add_explicit(&pool->awake, 1, memory_order_relaxed);
        pthread_setname_np(worker->thread, "vecadd");
    }
    return error == 0;
}

static void
call(struct job *job, struct worker *worker)
{
    worker->state_before_call = atomic_exchange(&worker->state, CALLED);
    if (worker->state_before_call == ASLEEP) {
        const int count = atomic_load_explicit(&job->asleep_count, memory_order_relaxed);
        job->asleep[count] = worker->number;
        atomic_store_explicit(&job->asleep_count, count + 1, memory_order_release);
    }
}

/* Calls a chosen worker unless it has fallen asleep since; the remaining threads take over its blocks. */
static void
call_if_awake(struct worker *worker)
{
    unsigned state = IDLE;
    worker->state_before_call = IDLE;
    if (!atomic_compare_exchange_strong(&worker->state, &state, CALLED))
        worker->part = 0;
}

static void
dismiss(struct thread_pool *pool, struct worker *worker)
{
    unsigned state = CALLED;
    if (atomic_compare_exchange_strong(&worker->state, &state, worker->state_before_call))
        return;
    if (pool->spins)
        spin_while(&worker->state, WORKING);
    state = WORKING;
    if (atomic_compare_exchange_strong(&worker->state, &state, AWAITED))
        state = AWAITED;
    while (state == AWAITED) {
        futex_wait(&worker->state, AWAITED);
        state = atomic_load(&worker->state);
    }
}

/* The pool, made on first use; NULL if there is no memory for it. */
static struct thread_pool *
the_pool(void)
{
    struct thread_pool *pool = atomic_load_explicit(&runtime.threads, memory_order_acquire);
    if (pool)
        return pool;
    runtime_start();
    struct thread_pool *fresh = aligned_alloc(CACHE_LINE, sizeof *fresh);
    if (fresh == NULL)
        return NULL;
    memset(fresh, 0, sizeof *fresh);
    if (atomic_compare_exchange_strong(&runtime.threads, &pool, fresh))
        return fresh;
    free(fresh);
    return pool;
}

/* True: the caller owns the pool until release_pool. False: another thread owns it. */
static bool
lock_pool(struct thread_pool *pool)
{
    return !atomic_exchange_explicit(&pool->busy, true, memory_order_acquire);
}

static struct thread_pool *
acquire_pool(void)
{
    struct thread_pool *pool = the_pool();
    return pool && lock_pool(pool) ? pool : NULL;
}

static void
release_pool(struct thread_pool *pool)
{
    atomic_store_explicit(&pool->busy, false, memory_order_release);
}

/* Starts missing workers; returns the number of threads for the job. */
static int
staff_pool(struct thread_pool *pool, int threads)
{
    if (threads > THREADS_MAX)
        threads = THREADS_MAX;
    while (pool->started < threads - 1 && start_worker(pool, pool->started + 1))
        pool->started++;
    atomic_store_explicit(&pool->spins, pool->started < threads_usable_cpus(), memory_order_relaxed);
    return threads <= pool->started ? threads : pool->started + 1;
}

/* Gives parts to up to threads - 1 workers that are spinning. Returns the number of threads for the job, the caller
 * included. */
static int
choose_awake(struct thread_pool *pool, int threads)
{
    int chosen = 1;
    for (int i = 1; i <= pool->started; i++) {
        struct worker *worker = &pool->worker[i];
        const bool spins = atomic_load_explicit(&worker->state, memory_order_relaxed) == IDLE;
        worker->part = spins && chosen < threads ? chosen++ : 0;
    }
    return chosen;
}

static int
choose_all(struct thread_pool *pool, int threads)
{
    const int chosen = staff_pool(pool, threads);
    for (int i = 1; i <= pool->started; i++)
        pool->worker[i].part = i < chosen ? i : 0;
    return chosen;
}

/* Cuts the job into slices of whole blocks, as even as possible. */
static void
cut_slices(struct thread_pool *pool, size_t n)
{
    const struct job *job = &pool->job;
    const size_t blocks = (n - 1) / job->block + 1;
    const size_t share = blocks / (size_t)job->threads, rest = blocks % (size_t)job->threads;
    size_t begin = 0;
    for (int i = 0; i < job->threads; i++) {
        const size_t length = (share + ((size_t)i < rest)) * job->block;
        const size_t end = length < n - begin ? begin + length : n;
        atomic_store_explicit(&pool->slice[i].next, begin, memory_order_relaxed);
        pool->slice[i].end = end;
        begin = end;
    }
}

/* Runs the job on `threads` threads, whose parts are assigned. `wakes`: wakes chosen workers that sleep, else skips
 * them. */
static unsigned
run_together(struct thread_pool *pool, int threads, bool wakes, size_t n, size_t block, threads_body *body,
             void *context)
{
    struct job *job = &pool->job;
    job->body = body;
    job->context = context;
    job->block = block;
    job->threads = threads;
    job->control = fpenv_without_flags(fpenv_get());
    atomic_store_explicit(&pool->callers_cpu, sched_getcpu(), memory_order_relaxed);
    atomic_store_explicit(&job->flags, 0, memory_order_relaxed);
    atomic_store_explicit(&job->asleep_count, 0, memory_order_relaxed);
    atomic_store_explicit(&job->woken, 0, memory_order_relaxed);
    cut_slices(pool, n);

    for (int i = 1; i <= pool->started; i++)
        if (pool->worker[i].part && wakes)
            call(job, &pool->worker[i]);
        else if (pool->worker[i].part)
            call_if_awake(&pool->worker[i]);
    work(pool, 0);
    for (int i = 1; i <= pool->started; i++)
        if (pool->worker[i].part)
            dismiss(pool, &pool->worker[i]);
    return atomic_load_explicit(&job->flags, memory_order_relaxed);
}

static void
run_alone(size_t n, size_t block, threads_body *body, void *context)
{
    for (size_t begin = 0; begin < n; begin += block) {
        const size_t left = n - begin;
        body(context, begin, begin + (left < block ? left : block), 0);
        if (left <= block)
            return;
    }
}

unsigned
threads_run(int threads, size_t n, size_t block, threads_body *body, void *context)
{
    struct thread_pool *pool = threads > 1 && n > block ? acquire_pool() : NULL;
    const fpenv_word environment = fpenv_begin();
    unsigned flags = 0;

    if (pool) {
        flags = run_together(pool, choose_all(pool, threads), true, n, block, body, context);
        release_pool(pool);
    } else {
        run_alone(n, block, body, context);
    }
    return flags | fpenv_end(environment);
}

/* Whether a short job that begins now belongs to a burst that has lasted BURST_NS. If so, a new burst begins with it.
 */
static bool
burst_has_lasted(struct thread_pool *pool, long long now)
{
    if (now - atomic_load_explicit(&pool->short_ended, memory_order_relaxed) > BURST_GAP_NS)
        atomic_store_explicit(&pool->burst_began, now, memory_order_relaxed);
    if (now - atomic_load_explicit(&pool->burst_began, memory_order_relaxed) < BURST_NS)
        return false;
    atomic_store_explicit(&pool->burst_began, now, memory_order_relaxed);
    return true;
}

unsigned
threads_run_short(int threads, size_t n, size_t block, threads_body *body, threads_body *alone, void *context)
{
    struct thread_pool *pool = threads > 1 && n > block ? the_pool() : NULL;
    const fpenv_word environment = fpenv_begin();
    unsigned flags = 0;
    int chosen = 1;

    if (pool) {
        const bool awake = atomic_load_explicit(&pool->awake, memory_order_relaxed) > 0;
        const bool wakes = !awake && burst_has_lasted(pool, now_ns());
        if ((awake || wakes) && lock_pool(pool)) {
            chosen = wakes ? choose_all(pool, threads) : choose_awake(pool, threads);
            if (chosen > 1)
                flags = run_together(pool, chosen, wakes, n, block, body, context);
            release_pool(pool);
        }
    }
    if (chosen == 1) {
        alone(context, 0, n, 0);
        if (pool)
            atomic_store_explicit(&pool->short_ended, now_ns(), memory_order_relaxed);
    }
    return flags | fpenv_end(environment);
}

void
threads_stop(void)
{
    struct thread_pool *pool = atomic_load(&runtime.threads);
    if (pool == NULL)
        return;
    while (atomic_exchange_explicit(&pool->busy, true, memory_order_acquire))
        sched_yield();
    for (int i = 1; i <= pool->started; i++) {
        if (atomic_exchange(&pool->worker[i].state, STOPPING) == ASLEEP)
            futex_wake(&pool->worker[i].state);
        pthread_join(pool->worker[i].thread, NULL);
    }
    pool->started = 0;
    atomic_store_explicit(&pool->awake, 0, memory_order_relaxed);
    release_pool(pool);
}

/* In the child the parent's pool has no threads and may stay busy for ever: the child forgets it, without freeing it.
 */
static void
in_forked_child(bool used_cuda)
{
    (void)used_cuda;
    atomic_store(&runtime.threads, NULL);
    threads_count_forget();
}

static void __attribute__((constructor)) register_hooks(void)
{
    static struct runtime_hooks hooks = {.in_forked_child = in_forked_child, .at_exit = threads_stop};
    runtime_register(&hooks);
}
