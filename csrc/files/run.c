#include "files/run.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/layout.h"
#include "base/util.h"

enum {
    TOGETHER = 8,   /* tiles of a stretch: what a lock costs is then nothing beside them */
    ALIGNMENT = 64, /* of a tile in memory */
    NO_OPERAND = -1,
};

struct job;

struct worker {
    struct job *job;
    int number;
    pthread_t thread;
};

/* The stretches from `next` on are not taken yet; those before `told` are done and were reported to the caller. */
struct job {
    const struct files_run *run;
    char *memory;
    atomic_bool stopped; /* threads then end with their tile */
    atomic_uint flags;

    pthread_mutex_t lock; /* for all below; taken for a few instructions */
    pthread_cond_t room, news;
    size_t next, told;
    int ended; /* threads */
    bool finished[2 * FILES_MOST_THREADS];
    struct files_outcome outcome;

    struct worker worker[FILES_MOST_THREADS];
};

void
files_prepare(struct files_run *run)
{
    struct tiles *tiles = &run->tiles;
    struct layout *layout = &tiles->layout;
    if (layout->ndim == 0) {
        layout->ndim = 1;
        layout->extent[0] = 1;
        for (int k = 0; k < LAYOUT_OPERANDS; k++)
            layout->stride[k][0] = (ssize_t)tiles->itemsize[k];
    }
    size_t widest = 1;
    for (int k = 0; k < LAYOUT_OPERANDS; k++)
        widest = larger(widest, tiles->itemsize[k]);
    run->together = tiles_turn(layout) ? 1 : TOGETHER;
    const size_t bytes = TOGETHER / run->together * smaller(run->window, SIZE_MAX / TOGETHER);
    tiles_cut(tiles, larger(1, smaller(layout_size(layout), bytes / widest)));
    run->stretches = (tiles->count - 1) / run->together + 1;
    run->threads = (int)smaller(smaller((size_t)run->threads, FILES_MOST_THREADS), run->stretches);

    struct tile whole = {.size = 0};
    ssize_t strides[LAYOUT_DIMENSIONS];
    for (int i = 0; i < layout->ndim; i++)
        whole.extent[i] = tiles->extent[i];
    run->memory = ALIGNMENT;
    for (int k = 0; k < LAYOUT_OPERANDS; k++) {
        run->room[k] = (tile_strides(tiles, &whole, k, strides) / ALIGNMENT + 1) * ALIGNMENT;
        run->memory += run->room[k] * (size_t)run->threads;
    }
}

/* Ends the job for all threads; the first error stays. */
static void
stop(struct job *job, int error, int operand)
{
    pthread_mutex_lock(&job->lock);
    if (!job->outcome.error) {
        job->outcome.error = error;
        job->outcome.operand = operand;
    }
    atomic_store_explicit(&job->stopped, true, memory_order_relaxed);
    pthread_cond_broadcast(&job->room);
    pthread_cond_signal(&job->news);
    pthread_mutex_unlock(&job->lock);
}

/* The runs of one tile in one file. They go to `memory`, or come from it, one after the other. */
struct moving {
    int descriptor;
    off_t offset;
    char *memory;
};

/* Returns 0, an errno or FILES_CUT_SHORT. Goes on after short reads and signals. */
static int
read_run(void *context, off_t at, size_t bytes)
{
    struct moving *moving = context;
    while (bytes) {
        const ssize_t got = pread(moving->descriptor, moving->memory, bytes, moving->offset + at);
        if (got == 0)
            return FILES_CUT_SHORT;
        if (got < 0 && errno != EINTR)
            return errno;
        if (got > 0) {
            moving->memory += got;
            at += got;
            bytes -= (size_t)got;
        }
    }
    return 0;
}

/* Returns 0 or an errno. Goes on after short writes and signals. */
static int
write_run(void *context, off_t at, size_t bytes)
{
    struct moving *moving = context;
    while (bytes) {
        const ssize_t put = pwrite(moving->descriptor, moving->memory, bytes, moving->offset + at);
        if (put == 0)
            return ENOSPC; /* no errno says why: there was no room, as other programs take it */
        if (put < 0 && errno != EINTR)
            return errno;
        if (put > 0) {
            moving->memory += put;
            at += put;
            bytes -= (size_t)put;
        }
    }
    return 0;
}

/* Reads an input's part of a tile into memory, or writes the sum's from there. False where that failed: the job stops.
 */
static bool
move_tile(struct job *job, const struct tile *tile, int operand, char *memory)
{
    const struct files_run *run = job->run;
    struct moving moving = {run->descriptor[operand], run->offset[operand], memory};
    const int error = tile_each_run(&run->tiles, tile, operand, operand == LAYOUT_SUM ? write_run : read_run, &moving);
    if (error)
        stop(job, error, operand);
    return !error;
}

/* Reads, adds and writes a tile. False where the job is stopped. */
static bool
add_one(struct job *job, int worker, const struct tile *tile)
{
    const struct files_run *run = job->run;
    char *at[LAYOUT_OPERANDS], *memory = job->memory;
    unsigned flags = 0;
    for (int k = 0; k < LAYOUT_OPERANDS; k++) {
        at[k] = memory + run->room[k] * (size_t)worker;
        memory += run->room[k] * (size_t)run->threads;
    }
    if (run->moves || add_tile_in_place(&run->adder, &run->tiles))
        at[LAYOUT_SUM] = at[0]; /* which is in the cache */
    if (atomic_load_explicit(&job->stopped, memory_order_relaxed) || !move_tile(job, tile, 0, at[0]) ||
        !move_tile(job, tile, 1, at[1]))
        return false;
    if (!run->moves && !add_tile(&run->adder, &run->tiles, tile, at, &flags) &&
        run->add(run->context, worker, &run->tiles, tile, at) < 0) {
        stop(job, FILES_ENDED, NO_OPERAND);
        return false;
    }
    if (flags)
        atomic_fetch_or_explicit(&job->flags, flags, memory_order_relaxed);
    return move_tile(job, tile, LAYOUT_SUM, at[LAYOUT_SUM]);
}

/* The tiles [*begin, *end) of a stretch. */
static void
tiles_of(const struct files_run *run, size_t stretch, size_t *begin, size_t *end)
{
    *begin = stretch * run->together;
    *end = smaller(*begin + run->together, run->tiles.count);
}

/* Stretches that threads may be ahead of job->told. */
static size_t
ahead(const struct job *job)
{
    return 2 * (size_t)job->run->threads;
}

/* Takes the next stretch, after a wait until earlier ones were reported to the caller. False: none is left. */
static bool
take(struct job *job, size_t *stretch)
{
    pthread_mutex_lock(&job->lock);
    while (job->run->tell && !job->stopped && job->next < job->run->stretches && job->next >= job->told + ahead(job))
        pthread_cond_wait(&job->room, &job->lock);
    const bool taken = !job->stopped && job->next < job->run->stretches;
    if (taken)
        *stretch = job->next++;
    pthread_mutex_unlock(&job->lock);
    return taken;
}

/* A thread's whole life: it takes stretches of tiles until none is left or the job is stopped. */
static void *
work(void *argument)
{
    const struct worker *worker = argument;
    struct job *job = worker->job;
    struct tile tile;
    size_t stretch, number, end;
    bool added = true;
    while (added && take(job, &stretch)) {
        for (tiles_of(job->run, stretch, &number, &end); added && number < end; number++) {
            tiles_at(&job->run->tiles, number, &tile);
            added = add_one(job, worker->number, &tile);
        }
        pthread_mutex_lock(&job->lock);
        job->finished[stretch % ahead(job)] = added;
        pthread_cond_signal(&job->news);
        pthread_mutex_unlock(&job->lock);
    }
    pthread_mutex_lock(&job->lock);
    job->ended++;
    pthread_cond_signal(&job->news);
    pthread_mutex_unlock(&job->lock);
    return NULL;
}

/* Starts the threads and returns their number; without one, the job is stopped by an error. */
static int
start(struct job *job)
{
    sigset_t before;
    int count = 0, error = 0;
    signals_block(&before);
    while (count < job->run->threads && !error) {
        struct worker *worker = &job->worker[count];
        *worker = (struct worker){.job = job, .number = count};
        error = pthread_create(&worker->thread, NULL, work, worker);
        if (!error) {
            pthread_setname_np(worker->thread, "vecadd-files");
            count++;
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (count == 0)
        stop(job, error, NO_OPERAND);
    return count;
}

/* Waits for the end of the job, which has `count` threads: has the caller look for signals now and then, and tells it
 * of each stretch if it wants to know. */
static void
follow(struct job *job, int count)
{
    const struct files_run *run = job->run;
    struct tile tile;
    struct timespec next;
    size_t done = 0, number, end;
    clock_gettime(CLOCK_MONOTONIC, &next);
    pthread_mutex_lock(&job->lock);
    while (!job->stopped && (run->tell ? job->told < run->stretches : job->ended < count)) {
        bool *finished = &job->finished[job->told % ahead(job)];
        if (!run->tell || !*finished) {
            if (pthread_cond_timedwait(&job->news, &job->lock, &next) != ETIMEDOUT)
                continue;
            pthread_mutex_unlock(&job->lock);
            if (run->check(run->context))
                stop(job, FILES_ENDED, NO_OPERAND);
            clock_gettime(CLOCK_MONOTONIC, &next);
            next.tv_nsec += 100000000;
            next.tv_sec += next.tv_nsec / 1000000000;
            next.tv_nsec %= 1000000000;
            pthread_mutex_lock(&job->lock);
            continue;
        }
        *finished = false;
        for (tiles_of(run, job->told++, &number, &end); number < end; number++) {
            tiles_at(&run->tiles, number, &tile);
            done += tile.size;
        }
        pthread_cond_broadcast(&job->room);
        pthread_mutex_unlock(&job->lock);
        if (run->tell(run->context, done))
            stop(job, FILES_ENDED, NO_OPERAND);
        pthread_mutex_lock(&job->lock);
    }
    pthread_mutex_unlock(&job->lock);
}

struct files_outcome
files_run(const struct files_run *run, char *memory)
{
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return (struct files_outcome){.error = ENOMEM, .operand = NO_OPERAND};
    job->run = run;
    job->memory = (char *)(((uintptr_t)memory + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    pthread_mutex_init(&job->lock, NULL);
    pthread_cond_init(&job->room, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&job->news, &monotonic);
    pthread_condattr_destroy(&monotonic);

    const int count = start(job);
    follow(job, count);
    for (int i = 0; i < count; i++)
        pthread_join(job->worker[i].thread, NULL);

    struct files_outcome outcome = job->outcome;
    outcome.flags = atomic_load(&job->flags);
    pthread_cond_destroy(&job->news);
    pthread_cond_destroy(&job->room);
    pthread_mutex_destroy(&job->lock);
    free(job);
    return outcome;
}
