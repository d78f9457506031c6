#include "host/threads.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fpenv.h"
#include "base/plan.h"
#include "base/runtime.h"
#include "base/util.h"
#include "host/schedule.h"

enum { CACHE_LINE = 64 };

/* ---- waiting for a word of memory to change */

enum {
    SPIN_NS = 50000, /* sleeping and waking costs 10 to 50 us: spinning longer costs more than it can save */
    PAUSES_A_LOOK_AT_THE_CLOCK = 16,
};

/* Sleeps until a wake. Returns at once if the word is not `expected`, and sometimes without a wake. */
static void
futex_wait(atomic_uint *word, unsigned expected)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

/* futex_wait for `seconds` at most. Returns whether they have passed. */
static bool
futex_wait_seconds(atomic_uint *word, unsigned expected, int seconds)
{
    const struct timespec most = {.tv_sec = seconds};
    return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &most, NULL, 0) < 0 && errno == ETIMEDOUT;
}

static void
futex_wake(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void
pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* Spins until the state is no longer `value`, for `ns` at most. */
static void
spin_while(atomic_uint *state, unsigned value, long long ns)
{
    const long long deadline = now_ns() + ns;
    do {
        for (int i = 0; i < PAUSES_A_LOOK_AT_THE_CLOCK; i++) {
            if (atomic_load_explicit(state, memory_order_relaxed) != value)
                return;
            pause_briefly();
        }
    } while (now_ns() < deadline);
}

/* ---- the caller's processor
 *
 * Where the process has two processors, a caller that wakes its one worker takes its own processor out of the worker's
 * affinity mask. Linux may otherwise choose that processor though the other one idles: in a virtual machine an idle
 * processor that the hypervisor has stopped does not count as free. The worker then waits until its caller pauses, or
 * interrupts it. On an EPYC that happened in 11 of 14 series of sums, and 2^18 float32 took 39 us, with the mask 18. On
 * four, eight and sixteen processors of Sapphire Rapids the two system calls for each worker made a sum after a pause
 * 10 to 30 % longer. */

enum keeping { KEPT_NOT, KEPT, KEPT_RESTORING };

/* A worker's affinity masks. The caller writes them while the worker is WAKING, and then sets KEPT. Worker
 * or caller restores the usual mask: the first thread that changes KEPT to KEPT_RESTORING, and KEPT_NOT afterwards. */
struct kept_off {
    atomic_uint state;       /* enum keeping */
    cpu_set_t usual, others; /* before the wake, and without the caller's processor */
};

/* Takes `cpu` out of the thread's mask if that leaves one processor of two. A refusal by the system is ignored. */
static void
callers_cpu_keep_off(struct kept_off *kept, pthread_t thread, int cpu)
{
    if (cpu < 0 || cpu >= CPU_SETSIZE || pthread_getaffinity_np(thread, sizeof kept->usual, &kept->usual) != 0)
        return;
    kept->others = kept->usual;
    CPU_CLR((unsigned)cpu, &kept->others);
    if (CPU_COUNT(&kept->usual) == 2 && CPU_COUNT(&kept->others) == 1 &&
        pthread_setaffinity_np(thread, sizeof kept->others, &kept->others) == 0)
        atomic_store(&kept->state, KEPT);
}

/* True: this thread is the one that ends the keeping, and has made it `next`. */
static bool
end_keeping(struct kept_off *kept, enum keeping next)
{
    unsigned expected = KEPT;
    return atomic_load_explicit(&kept->state, memory_order_relaxed) == KEPT &&
           atomic_compare_exchange_strong(&kept->state, &expected, next);
}

/* Restores the thread's usual mask, once for each callers_cpu_keep_off. A mask that the program has set in between
 * stays. */
static void
callers_cpu_allow(struct kept_off *kept, pthread_t thread)
{
    cpu_set_t now;
    if (!end_keeping(kept, KEPT_RESTORING))
        return;
    if (pthread_getaffinity_np(thread, sizeof now, &now) == 0 && CPU_EQUAL(&now, &kept->others))
        pthread_setaffinity_np(thread, sizeof kept->usual, &kept->usual);
    atomic_store(&kept->state, KEPT_NOT);
}

/* Gives the thread that mask, which no callers_cpu_allow of another thread replaces later. */
static void
callers_cpu_set_mask(struct kept_off *kept, pthread_t thread, const cpu_set_t *mask)
{
    if (!end_keeping(kept, KEPT_NOT))
        while (atomic_load(&kept->state) == KEPT_RESTORING) /* two system calls of the worker's */
            sched_yield();
    pthread_setaffinity_np(thread, sizeof *mask, mask);
}

/* ---- a job's slices: a thread's share each, from which threads take blocks */

struct slice {
    alignas(CACHE_LINE) atomic_size_t next;
    size_t begin, end;
};

/* Takes the next block: *begin is where. */
static bool
slice_take(struct slice *slice, size_t block, size_t *begin)
{
    if (atomic_load_explicit(&slice->next, memory_order_relaxed) >= slice->end)
        return false;
    *begin = atomic_fetch_add_explicit(&slice->next, block, memory_order_relaxed);
    return *begin < slice->end;
}

/* Takes the slice's first block, unless another thread has. */
static bool
slice_begin(struct slice *slice, size_t block, size_t *begin)
{
    *begin = slice->begin;
    return *begin < slice->end && atomic_load_explicit(&slice->next, memory_order_relaxed) == *begin &&
           atomic_compare_exchange_strong(&slice->next, begin, *begin + block);
}

/* Cuts [0, n) into slices of whole blocks, as even as possible. */
static void
slices_cut(struct slice *slice, int count, size_t n, size_t block)
{
    const size_t blocks = (n - 1) / block + 1, share = blocks / (size_t)count, rest = blocks % (size_t)count;
    size_t begin = 0;
    for (int i = 0; i < count; i++) {
        const size_t end = begin + smaller((share + ((size_t)i < rest)) * block, n - begin);
        atomic_store_explicit(&slice[i].next, begin, memory_order_relaxed);
        slice[i].begin = begin;
        slice[i].end = end;
        begin = end;
    }
}

/* ---- the pool */

/* WAKING: a caller has found the worker asleep and sets its affinity mask; the worker waits until it is AWAKE. */
enum worker_state { AWAKE, ASLEEP, WAKING };

/* A job's number is even. A worker writes it to `inside` before it looks at the job, and then makes sure that the job
 * is still open; a caller that has closed its job waits for all who are inside. So no caller waits for a worker that
 * has not begun, and no worker touches a job that is over. A caller that tires of spinning adds AWAITED and sleeps
 * there. */
enum { NO_JOB = 0, AWAITED = 1, STOPPING = 1 };

struct worker {
    alignas(2 * CACHE_LINE) atomic_uint inside;
    atomic_uint state; /* enum worker_state: the futex that it sleeps on */
    int number;
    struct thread_pool *pool;
    pthread_t thread;
    struct kept_off kept_off;
    pid_t id; /* the system's, for a caller that has joined it */
};

struct thread_pool {
    atomic_bool busy;   /* the thread that set it owns the fields that are not atomic */
    atomic_int started; /* workers 1 ... started exist; the caller is number 0 */
    unsigned number;    /* of the last job */
    atomic_bool spins;  /* the last job had a processor for every thread */
    cpu_set_t mask;     /* of a caller that wakes or starts workers: theirs too; empty before the first one */

    /* Any thread uses these. */
    atomic_int awake;                     /* workers that spin or work */
    atomic_llong burst_began, last_began; /* jobs that lacked workers: now_ns() */

    /* What the workers read; the caller writes it while no job is open. */
    alignas(2 * CACHE_LINE) atomic_uint open; /* the job's number, NO_JOB or STOPPING */
    int threads;
    bool stays_in_slice; /* as the schedule says: if no worker must wake first */
    size_t block;
    threads_body *body;
    void *context;
    fpenv_word control;
    atomic_int callers_cpu;                             /* of the last job */
    alignas(CACHE_LINE) atomic_uchar part[THREADS_MAX]; /* each worker's, from 1 on; 0: it has none */
    alignas(CACHE_LINE) atomic_uint flags;

    struct worker worker[THREADS_MAX];
    struct slice slice[THREADS_MAX];
};

enum {
    /* A burst is a series of jobs that lack workers, each of which begins at most BURST_APART_NS after the one before.
     * Once it has lasted BURST_NS, its caller wakes workers: the wake costs 2-5 us, a fiftieth of the time that has
     * passed, and saves more if the burst lasts as long again. */
    BURST_APART_NS = 60000,
    BURST_NS = 200000,
    PATIENCE_NS = 10000, /* a slice that a cache contains takes less */
    JOBS_A_LOOK = 64,    /* at the caller's mask where no worker is woken: a look costs 0.2 us, the shortest job 3 */
};

static bool (*idle_work)(void); /* set while the library is loaded, as is idle_seconds */
static int idle_seconds;

/* ---- workers: threads that spin and then sleep until a job has a part for them */

/* Runs the block from `begin` on, and all that are left of the slice. */
static void
run_from(struct thread_pool *pool, struct slice *slice, size_t begin, int part)
{
    do
        pool->body(pool->context, begin, begin + smaller(pool->block, slice->end - begin), part);
    while (slice_take(slice, pool->block, &begin));
}

/* Runs blocks of the open job, as the thread of that part, until none is left. Every thread begins with its
 * own slice, the same one in every job, so that it finds the last job's data in its cache; then it helps with the other
 * slices, the caller first with that of the worker that was woken last. */
static void
run_part(struct thread_pool *pool, int part, bool stays_in_slice)
{
    const int threads = pool->threads;
    const size_t block = pool->block;
    size_t begin;
    if (slice_take(&pool->slice[part], block, &begin))
        run_from(pool, &pool->slice[part], begin, part);
    for (int i = 1; i < threads; i++) {
        struct slice *slice = &pool->slice[part ? (part + i) % threads : threads - i];
        if (stays_in_slice ? slice_begin(slice, block, &begin) : slice_take(slice, block, &begin))
            run_from(pool, slice, begin, part);
    }
}

/* If all other processors are busy, a worker may wake up on its caller's processor, where spinning would delay the
 * caller. In bursts of additions of 1 MiB on two cores, one of them busy, that took 50 us of every 250. */
static bool
may_spin(struct thread_pool *pool)
{
    return atomic_load_explicit(&pool->spins, memory_order_relaxed) &&
           sched_getcpu() != atomic_load_explicit(&pool->callers_cpu, memory_order_relaxed);
}

/* The number of the open job if the worker has a part in it and has not seen it yet; STOPPING; else NO_JOB. */
static unsigned
job_for(const struct worker *worker, unsigned seen)
{
    const struct thread_pool *pool = worker->pool;
    const unsigned open = atomic_load(&pool->open);
    if (open == seen || open == NO_JOB)
        return NO_JOB;
    return open == STOPPING || atomic_load_explicit(&pool->part[worker->number], memory_order_relaxed) ? open : NO_JOB;
}

static unsigned
spin_for_job(const struct worker *worker, unsigned seen)
{
    const long long since = now_ns();
    do {
        for (int i = 0; i < PAUSES_A_LOOK_AT_THE_CLOCK; i++) {
            const unsigned number = job_for(worker, seen);
            if (number != NO_JOB)
                return number;
            pause_briefly();
        }
    } while (may_spin(worker->pool) && now_ns() < since + SPIN_NS);
    return NO_JOB;
}

/* Sleeps until a caller wakes the worker. Worker 1 does the idle work meanwhile. A job that begins
 * while it does so is not delayed: the caller waits for no worker that has not begun. */
static void
sleep_until_woken(struct worker *worker)
{
    while (worker->number == 1 && atomic_load(&worker->state) == ASLEEP && idle_work && idle_work())
        futex_wait_seconds(&worker->state, ASLEEP, idle_seconds);
    while (atomic_load(&worker->state) != AWAKE)
        futex_wait(&worker->state, ASLEEP);
}

/* Goes to sleep, unless there is a job for it before its next caller can see that it sleeps. */
static unsigned
sleep_for_job(struct worker *worker, unsigned seen)
{
    callers_cpu_allow(&worker->kept_off, pthread_self());
    atomic_store(&worker->state, ASLEEP);
    atomic_fetch_sub(&worker->pool->awake, 1);
    const unsigned number = job_for(worker, seen);
    unsigned expected = ASLEEP;
    if (number == NO_JOB || !atomic_compare_exchange_strong(&worker->state, &expected, AWAKE))
        sleep_until_woken(worker);
    atomic_fetch_add(&worker->pool->awake, 1);
    return number;
}

/* Returns the number of a job, or STOPPING. */
static unsigned
wait_for_job(struct worker *worker, unsigned seen)
{
    for (;;) {
        unsigned number = spin_for_job(worker, seen);
        if (number == NO_JOB) /* a job that it is woken for may be over: then it spins in case another follows */
            number = sleep_for_job(worker, seen);
        if (number != NO_JOB)
            return number;
    }
}

static void
run_job(struct worker *worker, unsigned number)
{
    struct thread_pool *pool = worker->pool;
    atomic_store(&worker->inside, number);
    const int part = atomic_load(&pool->open) == number ? atomic_load(&pool->part[worker->number]) : 0;
    if (part) {
        fpenv_set(pool->control);
        run_part(pool, part, pool->stays_in_slice);
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
    for (unsigned number = NO_JOB; (number = wait_for_job(worker, number)) != STOPPING;)
        run_job(worker, number);
    return NULL;
}

/* Starts worker `number`, awake. Returns false where the system gives no thread. */
static bool
start_worker(struct thread_pool *pool, int number)
{
    struct worker *worker = &pool->worker[number];
    sigset_t before;
    worker->pool = pool;
    worker->number = number;
    atomic_store(&worker->inside, NO_JOB);
    atomic_store(&worker->state, AWAKE);
    atomic_store(&worker->kept_off.state, KEPT_NOT);
    signals_block(&before);
    const int error = pthread_create(&worker->thread, NULL, worker_main, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) {
        atomic_fetch_add_explicit(&pool->awake, 1, memory_order_relaxed);
        pthread_setname_np(worker->thread, "vecadd");
    }
    return error == 0;
}

/* `keep_off`: takes the caller's processor out of the worker's mask. */
static void
wake_worker(struct worker *worker, bool keep_off)
{
    unsigned expected = ASLEEP;
    if (!atomic_compare_exchange_strong(&worker->state, &expected, WAKING))
        return;
    if (keep_off)
        callers_cpu_keep_off(&worker->kept_off, worker->thread,
                             atomic_load_explicit(&worker->pool->callers_cpu, memory_order_relaxed));
    atomic_store(&worker->state, AWAKE);
    futex_wake(&worker->state);
}

/* ---- callers */

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
try_lock_pool(struct thread_pool *pool)
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
start_workers(struct thread_pool *pool, int threads, int most)
{
    threads = threads < THREADS_MAX ? threads : THREADS_MAX;
    for (; pool->started < threads - 1 && most > 0 && start_worker(pool, pool->started + 1); most--)
        pool->started++;
}

/* Workers begin with the mask of the caller that starts them. Where a caller has another one since, so do they, and the
 * processors are counted again. Not on a machine with more than 1024 processors. */
static void
follow_caller(struct thread_pool *pool)
{
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof mask, &mask) != 0 || CPU_EQUAL(&mask, &pool->mask))
        return;
    if (CPU_COUNT(&pool->mask) > 0) {
        for (int i = 1; i <= pool->started; i++)
            callers_cpu_set_mask(&pool->worker[i].kept_off, pool->worker[i].thread, &mask);
        threads_count_forget();
    }
    pool->mask = mask;
}

/* Gives parts to up to threads - 1 workers: first to those that are awake, then, where the job wakes them, to others.
 * Returns the number of threads for the job, the caller included. */
static int
assign_parts(struct thread_pool *pool, int threads, bool wakes)
{
    const bool all_awake = atomic_load(&pool->awake) >= pool->started;
    unsigned char part[THREADS_MAX] = {0};
    int given = 1;
    for (int i = 1; i <= pool->started && given < threads; i++)
        if (all_awake || atomic_load_explicit(&pool->worker[i].state, memory_order_relaxed) == AWAKE)
            part[i] = (unsigned char)given++;
    for (int i = 1; wakes && i <= pool->started && given < threads; i++)
        if (!part[i])
            part[i] = (unsigned char)given++;
    for (int i = 1; i <= pool->started; i++) /* the workers' caches keep what stays as it was */
        if (atomic_load_explicit(&pool->part[i], memory_order_relaxed) != part[i])
            atomic_store_explicit(&pool->part[i], part[i], memory_order_relaxed);
    return given;
}

/* Wakes all workers that have a part, one by one: on sixteen cores, where workers woke each other, a job took 1.2 to 3
 * times as long. */
static void
wake_workers(struct thread_pool *pool)
{
    const bool keep_off = pool->threads == 2 && processors_usable() == 2;
    for (int i = 1; i <= pool->started; i++)
        if (atomic_load_explicit(&pool->part[i], memory_order_relaxed))
            wake_worker(&pool->worker[i], keep_off);
}

/* Waits while the worker is inside the job of that number. A caller that goes to sleep restores the worker's mask:
 * another program may keep the worker's processor busy, and the caller's is free now. */
static void
wait_until_out(struct worker *worker, unsigned number)
{
    unsigned inside = number;
    if (atomic_load(&worker->inside) != number ||
        !atomic_compare_exchange_strong(&worker->inside, &inside, number | AWAITED))
        return;
    callers_cpu_allow(&worker->kept_off, worker->thread);
    while (atomic_load(&worker->inside) == (number | AWAITED))
        futex_wait(&worker->inside, number | AWAITED);
}

/* Waits until no block is being worked on. A worker that takes long for its slice gets help: it may have lost its
 * processor. */
static void
wait_for_workers(struct thread_pool *pool)
{
    const unsigned number = pool->number;
    bool helps = pool->stays_in_slice;
    for (int i = 1; i <= pool->started; i++) {
        struct worker *worker = &pool->worker[i];
        if (atomic_load(&worker->inside) != number)
            continue;
        const bool spins = atomic_load_explicit(&pool->spins, memory_order_relaxed);
        if (spins && helps)
            spin_while(&worker->inside, number, PATIENCE_NS);
        if (helps && atomic_load(&worker->inside) == number) {
            helps = false;
            run_part(pool, 0, false);
        }
        if (spins)
            spin_while(&worker->inside, number, SPIN_NS);
    }
    atomic_store(&pool->open, NO_JOB);
    for (int i = 1; i <= pool->started; i++)
        wait_until_out(&pool->worker[i], number);
}

/* Whether a job that lacks workers and begins now is one of a burst that has lasted BURST_NS. If so, a new burst begins
 * with it. */
static bool
burst_has_lasted(struct thread_pool *pool)
{
    const long long now = now_ns();
    const long long last = atomic_exchange_explicit(&pool->last_began, now, memory_order_relaxed);
    if (now - last > BURST_APART_NS)
        atomic_store_explicit(&pool->burst_began, now, memory_order_relaxed);
    if (now - atomic_load_explicit(&pool->burst_began, memory_order_relaxed) < BURST_NS)
        return false;
    atomic_store_explicit(&pool->burst_began, now, memory_order_relaxed);
    return true;
}

/* Runs the job on the caller and its workers. False, with nothing done, where no worker takes part: none is awake and
 * the job wakes none, or the system gives none, or another caller has the pool. */
static bool
run_in_pool(struct thread_pool *pool, const struct host_schedule *schedule, size_t n, threads_body *body, void *context,
            unsigned *flags)
{
    const bool lacks = atomic_load_explicit(&pool->awake, memory_order_relaxed) < schedule->threads - 1;
    const bool wakes = lacks && (schedule->wakes || burst_has_lasted(pool));
    if (!try_lock_pool(pool))
        return false;
    if (wakes || pool->number / 2 % JOBS_A_LOOK == 0)
        follow_caller(pool);
    if (wakes)
        start_workers(pool, schedule->threads, schedule->starts);
    pool->threads = assign_parts(pool, schedule->threads, wakes);
    if (pool->threads < 2) {
        release_pool(pool);
        return false;
    }
    pool->block = schedule->block;
    pool->body = body;
    pool->context = context;
    pool->stays_in_slice = schedule->stays_in_slice && atomic_load(&pool->awake) >= pool->threads - 1;
    pool->control = fpenv_without_flags(fpenv_get());
    atomic_store_explicit(&pool->callers_cpu, sched_getcpu(), memory_order_relaxed);
    atomic_store_explicit(&pool->spins, pool->threads <= processors_usable(), memory_order_relaxed);
    atomic_store_explicit(&pool->flags, 0, memory_order_relaxed);
    slices_cut(pool->slice, pool->threads, n, schedule->block);

    pool->number += 2;
    if (pool->number == NO_JOB)
        pool->number += 2;
    atomic_store(&pool->open, pool->number);
    if (wakes)
        wake_workers(pool);
    run_part(pool, 0, pool->stays_in_slice);
    wait_for_workers(pool);
    *flags = atomic_load_explicit(&pool->flags, memory_order_relaxed);
    release_pool(pool);
    return true;
}

unsigned
threads_run(const struct host_schedule *schedule, size_t n, threads_body *body, void *context,
            const struct fallback_loop *fallback)
{
    struct thread_pool *pool = schedule->threads > 1 && n > schedule->block ? the_pool() : NULL;
    const fpenv_word environment = fpenv_begin();
    unsigned flags = 0;
    if (pool && run_in_pool(pool, schedule, n, body, context, &flags))
        return flags | fpenv_end(environment);
    if (fallback)
        fallback->add(fallback->context);
    else if (n > 0)
        body(context, 0, n, 0);
    return fpenv_end(environment);
}

unsigned
threads_run_all(int threads, size_t n, size_t block, threads_body *body, void *context)
{
    const struct host_schedule schedule = {.threads = threads, .starts = THREADS_MAX, .wakes = true, .block = block};
    return threads_run(&schedule, n, body, context, NULL);
}

void
threads_when_idle(bool (*work)(void), int seconds)
{
    idle_work = work;
    idle_seconds = seconds;
}

int
threads_awake(void)
{
    struct thread_pool *pool = atomic_load(&runtime.threads);
    return pool ? atomic_load(&pool->awake) : 0;
}

/* A thread that has been joined counts as one of the process until the system is done with it. */
static void
wait_until_gone(pid_t id)
{
    enum { LOOKS = 10000 }; /* a moment is enough; another thread may have got the number */
    for (int i = 0; i < LOOKS && syscall(SYS_tgkill, getpid(), id, 0) == 0; i++)
        sched_yield();
}

/* Ends all workers and waits until the system no longer counts them. */
static void
stop_workers(struct thread_pool *pool)
{
    atomic_store(&pool->open, STOPPING);
    for (int i = 1; i <= pool->started; i++)
        wake_worker(&pool->worker[i], false);
    for (int i = 1; i <= pool->started; i++)
        pthread_join(pool->worker[i].thread, NULL);
    for (int i = 1; i <= pool->started; i++)
        wait_until_gone(pool->worker[i].id);
    pool->started = 0;
    atomic_store(&pool->awake, 0);
    atomic_store(&pool->open, NO_JOB);
}

void
threads_stop(void)
{
    struct thread_pool *pool = atomic_load(&runtime.threads);
    if (pool == NULL)
        return;
    while (!try_lock_pool(pool))
        sched_yield();
    stop_workers(pool);
    release_pool(pool);
}

/* Ends idle workers; the next job starts them again. Python 3.12 and later warn of a fork while there are threads, and
 * their stacks would stay mapped in the child. */
static void
before_fork(void)
{
    struct thread_pool *pool = atomic_load(&runtime.threads);
    if (pool == NULL || !try_lock_pool(pool))
        return;
    stop_workers(pool);
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
