#include "host/threads.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/fpenv.h"
#include "base/runtime.h"
#include "host/futex.h"
#include "host/page_faults.h"
#include "host/second_thread.h"
#include "host/slices.h"
#include "host/stores.h"
#include "host/sum_moves.h"
#include "host/thread_pool.h"
#include "host/threads_count.h"
#include "host/thresholds.h"
#include "host/ways.h"
#include "host/workers.h"

enum {
    /* A burst is a series of short jobs with gaps of at most BURST_GAP_NS. Once it has lasted BURST_NS, its caller
     * wakes workers: the wake costs 2-5 us, a fiftieth of the time that has passed, and saves more if the burst lasts
     * as long again. */
    BURST_GAP_NS = 25000,
    BURST_NS = 200000,
    /* A short job of so many bytes, or one after a rest, starts missing workers, one for so many bytes: each costs the
     * caller 20 to 40 us. */
    BYTES_TO_START = 1 << 20,
    BYTES_A_START = 256 << 10,
    RESTED_NS = 10000000, /* without a job */
    PATIENCE_NS = 10000,  /* a slice that a cache holds takes less */
    JOBS_A_LOOK = 64,     /* at the caller's mask where no worker is woken: a look costs 0.2 us, the shortest job 3 */
};

/* The pool, made on first use; NULL if there is no memory for it. */
static struct thread_pool *
the_pool(void)
{
    struct thread_pool *pool = atomic_load_explicit(&runtime.threads, memory_order_acquire);
    if (pool)
        return pool;
    runtime_start();
    struct thread_pool *fresh = aligned_alloc(2 * CACHE_LINE, sizeof *fresh);
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

static void
release_pool(struct thread_pool *pool)
{
    atomic_store_explicit(&pool->busy, false, memory_order_release);
}

/* Starts missing workers, `most` at most, until the job has its threads. */
static void
staff_pool(struct thread_pool *pool, int threads, size_t most)
{
    threads = threads < THREADS_MAX ? threads : THREADS_MAX;
    for (; pool->started < threads - 1 && most > 0 && worker_start(pool, pool->started + 1); most--)
        pool->started++;
}

/* Workers begin with the mask of the caller that starts them. Where a caller has another one since, so do they, and the
 * processors are counted again for the next job. Not on a machine with more than 1024 processors. */
static void
follow_caller(struct thread_pool *pool)
{
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof mask, &mask) != 0 || CPU_EQUAL(&mask, &pool->mask))
        return;
    if (CPU_COUNT(&pool->mask) > 0) {
        workers_follow(pool, &mask);
        threads_count_forget();
    }
    pool->mask = mask;
}

/* Gives parts to up to threads - 1 workers: first to those that are awake, then to up to `sleepers` others. Returns the
 * number of threads for the job, the caller included. */
static int
give_parts(struct thread_pool *pool, int threads, int sleepers)
{
    const bool all_awake = atomic_load(&pool->awake) >= pool->started;
    unsigned char part[THREADS_MAX] = {0};
    int given = 1;
    for (int i = 1; i <= pool->started && given < threads; i++)
        if (all_awake || atomic_load_explicit(&pool->worker[i].state, memory_order_relaxed) == AWAKE)
            part[i] = (unsigned char)given++;
    for (int i = 1; i <= pool->started && given < threads && sleepers > 0; i++)
        if (!part[i]) {
            part[i] = (unsigned char)given++;
            sleepers--;
        }
    for (int i = 1; i <= pool->started; i++) /* the workers' caches keep what stays as it was */
        if (atomic_load_explicit(&pool->part[i], memory_order_relaxed) != part[i])
            atomic_store_explicit(&pool->part[i], part[i], memory_order_relaxed);
    return given;
}

/* Waits until no block is being worked on. A worker that takes long for its slice gets help: it may have lost its
 * processor. */
static void
wait_for_workers(struct thread_pool *pool)
{
    const unsigned number = pool->number;
    bool helps = pool->keeps;
    for (int i = 1; i <= pool->started; i++) {
        struct worker *worker = &pool->worker[i];
        if (atomic_load(&worker->inside) != number)
            continue;
        const bool spins = atomic_load_explicit(&pool->spins, memory_order_relaxed);
        if (spins && helps)
            spin_while(&worker->inside, number, PATIENCE_NS);
        if (helps && atomic_load(&worker->inside) == number) {
            helps = false;
            workers_run(pool, 0, false);
        }
        if (spins)
            spin_while(&worker->inside, number, SPIN_NS);
    }
    atomic_store(&pool->open, NO_JOB);
    for (int i = 1; i <= pool->started; i++)
        worker_wait_until_out(&pool->worker[i], number);
}

/* Runs the job on the caller, on the workers that are awake and on up to `sleepers` others. Returns false, with nothing
 * done, if it has no worker and may be run alone. */
static bool
run_together(struct thread_pool *pool, const struct threads_job *job, int sleepers, unsigned *flags)
{
    pool->threads = give_parts(pool, job->threads, sleepers);
    if (pool->threads < 2 && job->alone)
        return false;
    pool->job = job;
    pool->keeps = job->keeps && atomic_load(&pool->awake) >= pool->threads - 1;
    pool->control = fpenv_without_flags(fpenv_get());
    atomic_store_explicit(&pool->callers_cpu, sched_getcpu(), memory_order_relaxed);
    atomic_store_explicit(&pool->spins, pool->threads <= threads_usable_cpus(), memory_order_relaxed);
    atomic_store_explicit(&pool->flags, 0, memory_order_relaxed);
    slices_cut(pool->slice, pool->threads, job->n, job->block);

    pool->number += 2;
    if (pool->number == NO_JOB)
        pool->number += 2;
    atomic_store(&pool->open, pool->number);
    if (sleepers > 0)
        workers_wake(pool);
    workers_run(pool, 0, pool->keeps);
    wait_for_workers(pool);
    *flags = atomic_load_explicit(&pool->flags, memory_order_relaxed);
    return true;
}

/* run_together after up to `starts` missing workers have been started. False too if another caller has the pool. */
static bool
run_in_pool(struct thread_pool *pool, const struct threads_job *job, int sleepers, size_t starts, unsigned *flags)
{
    if (!lock_pool(pool))
        return false;
    if (sleepers > 0 || pool->number / 2 % JOBS_A_LOOK == 0)
        follow_caller(pool);
    if (sleepers > 0)
        staff_pool(pool, job->threads, starts);
    const bool done = run_together(pool, job, sleepers, flags);
    release_pool(pool);
    return done;
}

static void
run_alone(const struct threads_job *job, bool streaming)
{
    if (job->alone) {
        (streaming ? job->alone_streaming : job->alone)(job->context, 0, job->n, 0);
        return;
    }
    for (size_t begin = 0; begin < job->n; begin += job->block) {
        const size_t left = job->n - begin;
        job->body(job->context, begin, begin + (left < job->block ? left : job->block), 0);
        if (left <= job->block)
            return;
    }
}

/* Whether a job that lacks workers and begins now is one of a burst that has lasted BURST_NS. If so, a new burst begins
 * with it. */
static bool
burst_has_lasted(struct thread_pool *pool, bool follows, long long now)
{
    if (!follows)
        atomic_store_explicit(&pool->burst_began, now, memory_order_relaxed);
    if (now - atomic_load_explicit(&pool->burst_began, memory_order_relaxed) < BURST_NS)
        return false;
    atomic_store_explicit(&pool->burst_began, now, memory_order_relaxed);
    return true;
}

/* Whether times decide how many threads add. Not where there are more than two, of which some have cores of their own,
 * nor where an L2 cache does not hold the sum. */
static bool
is_for_one_or_two(const struct threads_job *job)
{
    return job->threads == 2 && job->alone && job->bytes > 0 && job->bytes <= host_thresholds()->l2;
}

static bool
is_woken(enum way way)
{
    return way == WAY_WOKEN || way == WAY_WOKEN_STREAMING;
}

/* How one thread adds where one or two do. One streams a sum that moves: it waits for what ordinary stores read in
 * vain, and two share that. On two cores of an EPYC one thread took 0.66 for kept sums of 256 KiB. */
static enum way
way_of_one(const struct threads_job *job, bool moves)
{
    return moves && job->alone_streaming && is_for_one_or_two(job) ? WAY_STREAMING : WAY_ALONE;
}

/* Runs a job that lacks workers, with as many of those that sleep as pay. Caches hold little of what was there before a
 * rest, so that streaming stores come first then; else where the threads `prefer` them. */
static void
run_understaffed(struct thread_pool *pool, const struct threads_job *job, bool moves, bool prefers_streaming, int awake,
                 int lacking, unsigned *flags)
{
    const long long began = now_ns(), last = atomic_load_explicit(&pool->ended, memory_order_relaxed);
    const long long pause = began - last;
    const int started = atomic_load(&pool->started);
    const bool rested = last != 0 && pause > RESTED_NS, may_start = job->bytes >= BYTES_TO_START || rested;
    const struct ways_job known = {.bytes = job->bytes,
                                   .l2 = host_thresholds()->l2,
                                   .awake = awake,
                                   .asleep = may_start || started - awake > lacking ? lacking : started - awake,
                                   .rested = rested,
                                   .streams = job->alone_streaming != NULL,
                                   .woken_stream = job->ordinary != NULL,
                                   .stream_first = job->ordinary && (rested || prefers_streaming)};
    const bool follows = pause <= BURST_GAP_NS;
    const bool burst = burst_has_lasted(pool, follows, began) &&
                       (!is_for_one_or_two(job) || second_thread_is_woken(job->bytes, moves));
    int sleepers = lacking;
    const enum way woken = known.stream_first ? WAY_WOKEN_STREAMING : WAY_WOKEN,
                   way = burst                   ? woken
                         : follows && awake == 0 ? way_of_one(job, moves)
                                                 : ways_choose(&known, &sleepers);
    if (!is_woken(way))
        sleepers = 0;
    struct threads_job chosen = *job;
    if (job->ordinary && (is_woken(way) ? way : woken) == WAY_WOKEN)
        chosen.body = job->ordinary;
    const size_t starts = burst ? THREADS_MAX : may_start ? 1 + job->bytes / BYTES_A_START : 0;
    const bool together = awake + sleepers > 0 && run_in_pool(pool, &chosen, sleepers, starts, flags);
    if (!together)
        run_alone(job, way == WAY_STREAMING);
    const long long ended = now_ns();
    workers_note_end(pool, ended);
    if (!follows && awake == 0 && together == is_woken(way) && atomic_load(&pool->started) == started)
        ways_note_job(&known, way, ended - began);
}

/* Runs a job with the stores of its body. Returns false where it ran on the caller alone because another had the pool,
 * or there is none. */
static bool
run_staffed(struct thread_pool *pool, const struct threads_job *job, unsigned *flags)
{
    if (pool && run_in_pool(pool, job, job->alone ? 0 : THREADS_MAX, THREADS_MAX, flags))
        return true;
    run_alone(job, false);
    return false;
}

/* Runs a job whose threads may have streaming or ordinary stores and are awake, or are all woken: then times say little
 * about the stores. A caller alone keeps to its own: after 1 ms one took 527 us for 24 MiB of arrays by streaming
 * stores and 861 by ordinary ones, though two that were awake took 316 and 200. */
static void
run_with_quicker_stores(struct thread_pool *pool, const struct threads_job *job, bool moves, int lacking,
                        unsigned *flags)
{
    const bool staffed = pool && lacking <= 0;
    const bool streaming =
        staffed ? stores_choose_streaming(job->bytes, moves) : stores_prefer_streaming(job->bytes, moves);
    struct threads_job chosen = *job;
    if (!streaming)
        chosen.body = job->ordinary;
    const long faults = moves ? page_faults() : 0;
    const long long began = now_ns();
    if (run_staffed(pool, &chosen, flags) && staffed) {
        const long long ns = now_ns() - began;
        if (!moves || page_faults() == faults)
            stores_note(job->bytes, moves, streaming, ns);
    }
}

/* Runs a job whose worker is awake. */
static void
run_by_one_or_two(struct thread_pool *pool, const struct threads_job *job, bool moves, unsigned *flags)
{
    bool timed;
    const bool together = second_thread_choose(job->bytes, moves, &timed);
    const long long began = timed ? now_ns() : 0;
    const bool done = together && run_in_pool(pool, job, 0, THREADS_MAX, flags);
    if (!done)
        run_alone(job, way_of_one(job, moves) == WAY_STREAMING);
    if (timed && done == together)
        second_thread_note(job->bytes, moves, together, now_ns() - began);
}

unsigned
threads_run_job(const struct threads_job *job)
{
    struct thread_pool *pool = job->threads > 1 && job->n > job->block ? the_pool() : NULL;
    const fpenv_word environment = fpenv_begin();
    unsigned flags = 0;
    const int awake = pool ? atomic_load_explicit(&pool->awake, memory_order_relaxed) : 0;
    const int lacking = job->threads - 1 - awake;
    const bool moves = pool && job->bytes > 0 && sum_moves(job->bytes, job->sum);
    const bool chooses = job->ordinary && (moves || !job->ordinary_again);
    if (pool && job->alone && lacking > 0)
        run_understaffed(pool, job, moves, chooses && stores_prefer_streaming(job->bytes, moves), awake, lacking,
                         &flags);
    else if (chooses)
        run_with_quicker_stores(pool, job, moves, lacking, &flags);
    else {
        struct threads_job ordinary = *job;
        if (job->ordinary)
            ordinary.body = job->ordinary;
        if (pool && lacking <= 0 && is_for_one_or_two(job))
            run_by_one_or_two(pool, &ordinary, moves, &flags);
        else
            run_staffed(pool, &ordinary, &flags);
    }
    return flags | fpenv_end(environment);
}

void
threads_stop(void)
{
    struct thread_pool *pool = atomic_load(&runtime.threads);
    if (pool == NULL)
        return;
    while (!lock_pool(pool))
        sched_yield();
    workers_stop(pool);
    release_pool(pool);
}

/* Ends idle workers; the next job starts them again. Python 3.12 and later warn of a fork while there are threads, and
 * their stacks would stay mapped in the child. */
static void
before_fork(void)
{
    struct thread_pool *pool = atomic_load(&runtime.threads);
    if (pool == NULL || !lock_pool(pool))
        return;
    workers_stop(pool);
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
    static struct runtime_hooks hooks = {
        .before_fork = before_fork, .in_forked_child = in_forked_child, .at_exit = threads_stop};
    runtime_register(&hooks);
}
