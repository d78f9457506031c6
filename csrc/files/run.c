#include "files/run.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/min_max.h"
#include "base/now.h"
#include "base/strided.h"

enum {
    TOGETHER = 8,       /* tiles of a stretch: what a page fault or a lock costs is then a hundredth */
    LOOK_NS = 50000000, /* from one look at the caller's wishes to the next, where no stretch is to be told */
    MOST_THREADS = 64,
    TURNS = 2,
    PHASES = 16, /* of a sum that is long: a quarter of it is compared */
};

/* The page cache is left only for what was quicker by a tenth in every turn: turns on a shared disk differ by as much.
 */
static const double GAIN = 0.9;

/* The stretches [next, end) are still to be taken, those before `told` are done. */
struct job {
    const struct files_run *run;
    struct file file[LAYOUT_OPERANDS];
    enum way way;
    char *memory;
    atomic_bool stopped;
    atomic_uint flags;

    pthread_mutex_t lock; /* for all below; held for a few instructions */
    pthread_cond_t room, news;
    size_t next, end, told;
    size_t done; /* elements of the stretches before `told` */
    bool finished[2 * MOST_THREADS];
    struct files_outcome *outcome;
};

struct worker {
    struct job *job;
    int number;
    pthread_t thread;
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
    const size_t size = layout_size(layout), sum = tiles->itemsize[LAYOUT_SUM];
    const size_t most =
        larger(1, smaller(size, TOGETHER / run->together * smaller(run->window, SIZE_MAX / TOGETHER) / widest));
    /* Tiles of whole pages begin where pages of the sum's file do. */
    const size_t behind = (size_t)run->offset[LAYOUT_SUM] % FILE_PAGE;
    const bool whole_pages = most < size && most * sum % FILE_PAGE == 0 && behind % sum == 0;
    tiles_cut(tiles, most, whole_pages ? behind / sum : 0);
    run->stretches = (tiles->count - 1) / run->together + 1;
    run->threads = (int)smaller(smaller((size_t)run->threads, MOST_THREADS), run->stretches);

    struct tile whole = {.size = 0};
    ssize_t strides[LAYOUT_DIMENSIONS];
    for (int i = 0; i < layout->ndim; i++)
        whole.extent[i] = tiles->extent[i];
    run->memory = FILE_PAGE;
    for (int k = 0; k < LAYOUT_OPERANDS; k++) {
        run->room[k] = (tile_strides(tiles, &whole, k, strides) / FILE_PAGE + 2) * FILE_PAGE;
        run->memory += run->room[k] * (size_t)run->threads;
    }
}

/* One tile's reads or writes: the runs go to `at`, or come from it, one behind the other. */
struct moving {
    const struct file *file;
    off_t offset;
    char *at;
    bool writes;
};

static int
move_run(void *context, off_t at, size_t bytes)
{
    struct moving *moving = context;
    char *memory = moving->at;
    moving->at += bytes;
    return moving->writes ? file_write(moving->file, memory, bytes, moving->offset + at)
                          : file_read(moving->file, memory, bytes, moving->offset + at);
}

static int
move_tile(const struct job *job, const struct tile *tile, int operand, char *at)
{
    struct moving moving = {&job->file[operand], job->run->offset[operand], at, operand == LAYOUT_SUM};
    return tile_each_run(&job->run->tiles, tile, operand, move_run, &moving);
}

/* Where in the sum's file the stretch lies that begins with this tile, of an addition with a single axis. */
static off_t
place_in_sum(const struct files_run *run, const struct tile *tile)
{
    return run->offset[LAYOUT_SUM] + tile->start[0] * (ssize_t)run->tiles.itemsize[LAYOUT_SUM];
}

/* Bytes that stand before the tile in its buffer: a direct read fills whole pages. */
static size_t
bytes_before(const struct job *job, const struct tile *tile, int operand)
{
    const struct files_run *run = job->run;
    if (job->way != WAY_DIRECT)
        return 0;
    const size_t before = (size_t)(run->offset[operand] + tile->start[0] * run->tiles.layout.stride[operand][0]);
    return before % MAX_ITEMSIZE == 0 ? before % FILE_PAGE : 0;
}

/* Reads, adds and writes a tile; the sum goes to `mapped` where that is not NULL. */
static int
add_one(struct job *job, int worker, const struct tile *tile, char *mapped)
{
    const struct files_run *run = job->run;
    char *at[LAYOUT_OPERANDS], *memory = job->memory;
    size_t before[LAYOUT_OPERANDS];
    for (int k = 0; k < LAYOUT_OPERANDS; k++) {
        before[k] = bytes_before(job, tile, k);
        at[k] = memory + run->room[k] * (size_t)worker + before[k];
        memory += run->room[k] * (size_t)run->threads;
    }
    if (mapped)
        at[LAYOUT_SUM] = mapped;
    else if (before[0] == before[LAYOUT_SUM] && add_tile_in_place(&run->adder, &run->tiles))
        at[LAYOUT_SUM] = at[0]; /* which is in the cache */
    for (int k = 0; k < LAYOUT_SUM; k++) {
        const int error = move_tile(job, tile, k, at[k]);
        if (error)
            return error == FILE_CUT_SHORT ? FILES_CUT_SHORT - k : error;
    }
    unsigned flags = 0;
    if (run->moves) {
        if (mapped)
            memcpy(mapped, at[0], tile->size * run->tiles.itemsize[LAYOUT_SUM]);
    } else if (!add_tile(&run->adder, &run->tiles, tile, at, &flags) &&
               run->add(run->context, worker, &run->tiles, tile, at) < 0)
        return FILES_ENDED;
    if (flags)
        atomic_fetch_or_explicit(&job->flags, flags, memory_order_relaxed);
    return mapped ? 0 : move_tile(job, tile, LAYOUT_SUM, at[LAYOUT_SUM]);
}

static int
add_tiles(struct job *job, int worker, size_t begin, size_t end, char *pages, off_t place)
{
    struct tile tile;
    int error = 0;
    for (size_t number = begin; number < end && !error; number++) {
        if (atomic_load_explicit(&job->stopped, memory_order_relaxed))
            return FILES_ENDED;
        tiles_at(&job->run->tiles, number, &tile);
        error = add_one(job, worker, &tile, pages ? pages + (place_in_sum(job->run, &tile) - place) : NULL);
    }
    return error;
}

/* Adds a stretch. Its space is reserved before its pages are mapped, so that no access to them fails. */
static int
add_stretch(struct job *job, int worker, size_t stretch)
{
    const struct files_run *run = job->run;
    const size_t begin = stretch * run->together, end = smaller(begin + run->together, run->tiles.count);
    const int sum = run->descriptor[LAYOUT_SUM];
    if (run->tiles.layout.ndim > 1)
        return add_tiles(job, worker, begin, end, NULL, 0);

    struct tile first, last;
    tiles_at(&run->tiles, begin, &first);
    tiles_at(&run->tiles, end - 1, &last);
    const off_t place = place_in_sum(run, &first);
    const off_t bytes = place_in_sum(run, &last) + last.extent[0] * (ssize_t)run->tiles.itemsize[LAYOUT_SUM] - place;
    if (job->way != WAY_MAPPED) {
        const int error = add_tiles(job, worker, begin, end, NULL, 0);
        if (!error && run->synced) /* what a file system does not know of comes with the fsync */
            (void)sync_file_range(sum, place, bytes, SYNC_FILE_RANGE_WRITE);
        return error;
    }
    const off_t before = place % sysconf(_SC_PAGESIZE);
    int error = posix_fallocate(sum, place, bytes);
    if (error)
        return error;
    const size_t mapped = (size_t)(before + bytes);
    char *pages = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, sum, place - before);
    if (pages == MAP_FAILED)
        return errno;
    error = add_tiles(job, worker, begin, end, pages + before, place);
    munmap(pages, mapped);
    return error;
}

/* Ends the job for all threads; the first error stays. The lock is held. */
static void
stop(struct job *job, int error)
{
    if (!job->outcome->error)
        job->outcome->error = error;
    atomic_store_explicit(&job->stopped, true, memory_order_relaxed);
    pthread_cond_broadcast(&job->room);
    pthread_cond_signal(&job->news);
}

static size_t
elements_of(const struct files_run *run, size_t stretch)
{
    struct tile tile;
    size_t elements = 0;
    for (size_t i = stretch * run->together; i < smaller((stretch + 1) * run->together, run->tiles.count); i++) {
        tiles_at(&run->tiles, i, &tile);
        elements += tile.size;
    }
    return elements;
}

/* Stretches that threads may be ahead of job->told. */
static size_t
ahead(const struct job *job)
{
    return 2 * (size_t)job->run->threads;
}

/* Counts the next stretch if it is done. The lock is held. */
static bool
advance(struct job *job)
{
    bool *finished = &job->finished[job->told % ahead(job)];
    if (job->told == job->end || !*finished)
        return false;
    *finished = false;
    job->done += elements_of(job->run, job->told++);
    pthread_cond_broadcast(&job->room);
    return true;
}

/* Takes stretches until there are no more. Where the caller wants to be told of each, it counts them; else the threads
 * do, who wait for no one then. */
static void *
work(void *argument)
{
    const struct worker *worker = argument;
    struct job *job = worker->job;
    pthread_mutex_lock(&job->lock);
    for (;;) {
        while (!job->stopped && job->next < job->end && job->next >= job->told + ahead(job))
            pthread_cond_wait(&job->room, &job->lock);
        if (job->stopped || job->next >= job->end)
            break;
        const size_t stretch = job->next++;
        pthread_mutex_unlock(&job->lock);
        const int error = add_stretch(job, worker->number, stretch);
        pthread_mutex_lock(&job->lock);
        if (error)
            stop(job, error);
        job->finished[stretch % ahead(job)] = true;
        while (!job->run->in_turn && advance(job))
            ;
        if (job->run->in_turn || job->told == job->end)
            pthread_cond_signal(&job->news);
    }
    pthread_mutex_unlock(&job->lock);
    return NULL;
}

/* Tells the caller, until all stretches are done or the job is stopped. The lock is held, but not while the caller is
 * told. */
static void
follow(struct job *job)
{
    while (job->told < job->end && !job->stopped) {
        bool tells = job->run->in_turn && advance(job);
        if (!tells) {
            struct timespec until;
            clock_gettime(CLOCK_MONOTONIC, &until);
            until.tv_nsec += LOOK_NS;
            until.tv_sec += until.tv_nsec / 1000000000;
            until.tv_nsec %= 1000000000;
            tells = pthread_cond_timedwait(&job->news, &job->lock, &until) == ETIMEDOUT;
        }
        if (!tells)
            continue;
        const size_t done = job->done;
        pthread_mutex_unlock(&job->lock);
        const int ends = job->run->tell(job->run->context, done, atomic_load(&job->flags));
        pthread_mutex_lock(&job->lock);
        if (ends)
            stop(job, FILES_ENDED);
    }
}

/* Starts the threads, without signals: those are for the application's. Returns how many there are. */
static int
start(struct job *job, struct worker workers[])
{
    sigset_t all, before;
    int started = 0, error = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started < job->run->threads && !error) {
        workers[started] = (struct worker){.job = job, .number = started};
        error = pthread_create(&workers[started].thread, NULL, work, &workers[started]);
        if (!error)
            pthread_setname_np(workers[started++].thread, "vecadd-files");
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started == 0)
        job->outcome->error = error;
    return started;
}

/* Adds the stretches from job->told to `end` that way. Returns the seconds, those of the disk among them where it is
 * waited for. */
static double
go(struct job *job, size_t end, enum way way, bool to_the_disk)
{
    struct worker workers[MOST_THREADS];
    const double begun = now_seconds();
    if (job->outcome->error || job->told >= end)
        return 0;
    const struct files_run *run = job->run;
    const size_t first = job->told;
    job->way = run->tiles.layout.ndim == 1 ? way : WAY_CACHE; /* the others are for tiles of one run */
    job->end = end;
    for (int k = 0; k < LAYOUT_OPERANDS; k++) {
        job->file[k] = (struct file){.plain = run->descriptor[k], .direct = -1};
        if (job->way == WAY_DIRECT)
            file_open_direct(&job->file[k], k == LAYOUT_SUM);
    }
    const int started = start(job, workers);
    if (started > 0) {
        pthread_mutex_lock(&job->lock);
        follow(job);
        pthread_mutex_unlock(&job->lock);
    }
    for (int i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    for (int k = 0; k < LAYOUT_OPERANDS; k++)
        file_close_direct(&job->file[k]);
    if (to_the_disk) {
        struct tile tile;
        tiles_at(&run->tiles, first * run->together, &tile);
        const off_t place = place_in_sum(run, &tile);
        tiles_at(&run->tiles, end * run->together, &tile);
        (void)sync_file_range(run->descriptor[LAYOUT_SUM], place, place_in_sum(run, &tile) - place,
                              SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    }
    return now_seconds() - begun;
}

/* Goes both ways in turns over the first part of a long sum. Returns the quicker one; for a short sum run->way. */
static enum way
compare(struct job *job)
{
    const struct files_run *run = job->run;
    const size_t itemsize = run->tiles.itemsize[LAYOUT_SUM];
    const size_t bytes = run->together * (size_t)run->tiles.extent[0] * itemsize;
    const size_t phase = (larger(run->phase, 1) - 1) / bytes + 1;
    if (run->other == WAY_CACHE || run->tiles.layout.ndim > 1 || run->stretches < PHASES * phase)
        return run->way;
    bool quicker = true;
    for (int turn = 0; turn < TURNS; turn++) {
        const double cache = go(job, job->told + phase, WAY_CACHE, run->synced);
        const double other = go(job, job->told + phase, run->other, run->synced);
        quicker = quicker && other < GAIN * cache;
    }
    if (!job->outcome->error)
        job->outcome->way = quicker ? run->other : WAY_CACHE;
    return quicker ? run->other : WAY_CACHE;
}

void
files_run(const struct files_run *run, char *memory, struct files_outcome *outcome)
{
    pthread_condattr_t attributes;
    struct job job = {.run = run, .outcome = outcome};
    job.memory = (char *)(((uintptr_t)memory + FILE_PAGE - 1) / FILE_PAGE * FILE_PAGE);
    *outcome = (struct files_outcome){.way = WAY_COUNT};
    pthread_mutex_init(&job.lock, NULL);
    pthread_cond_init(&job.room, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&job.news, &attributes);
    pthread_condattr_destroy(&attributes);

    go(&job, run->stretches, compare(&job), false);
    if (!outcome->error && run->tell(run->context, job.done, atomic_load(&job.flags)))
        outcome->error = FILES_ENDED;

    pthread_cond_destroy(&job.news);
    pthread_cond_destroy(&job.room);
    pthread_mutex_destroy(&job.lock);
}
