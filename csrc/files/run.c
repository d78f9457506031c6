#include "files/run.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

#include "base/min_max.h"
#include "base/now.h"
#include "base/signals.h"
#include "files/move.h"
#include "files/stretch.h"

enum {
    LOOK_NS = 50000000, /* from one look at the caller's wishes to the next, where no stretch is to be told */
    TURNS = 2,
    PHASES = 16, /* of a sum that is long: a quarter of it is compared */
};

/* The page cache is left only for what was quicker by a tenth in every turn: turns on a shared disk differ by as much.
 */
static const double GAIN = 0.9;

/* The stretches [next, end) are still to be taken, those before `told` are done. */
struct job {
    struct stretches all;

    pthread_mutex_t lock; /* for all below; held for a few instructions */
    pthread_cond_t room, news;
    size_t next, end, told;
    size_t done; /* elements of the stretches before `told` */
    bool finished[2 * FILES_MOST_THREADS];
    struct files_outcome *outcome;
};

struct worker {
    struct job *job;
    int number;
    pthread_t thread;
};

/* The threads of one go, and what they work on. */
struct crew {
    struct job *job;
    int count;
    struct worker worker[FILES_MOST_THREADS];
};

/* Ends the job for all threads; the first error stays. The lock is held. */
static void
stop(struct job *job, int error)
{
    if (!job->outcome->error)
        job->outcome->error = error;
    atomic_store_explicit(&job->all.stopped, true, memory_order_relaxed);
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
    return 2 * (size_t)job->all.run->threads;
}

/* Counts the next stretch if it is done. The lock is held. */
static bool
advance(struct job *job)
{
    bool *finished = &job->finished[job->told % ahead(job)];
    if (job->told == job->end || !*finished)
        return false;
    *finished = false;
    job->done += elements_of(job->all.run, job->told++);
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
        while (!job->all.stopped && job->next < job->end && job->next >= job->told + ahead(job))
            pthread_cond_wait(&job->room, &job->lock);
        if (job->all.stopped || job->next >= job->end)
            break;
        const size_t stretch = job->next++;
        pthread_mutex_unlock(&job->lock);
        const int error = stretch_add(&job->all, worker->number, stretch);
        pthread_mutex_lock(&job->lock);
        if (error)
            stop(job, error);
        job->finished[stretch % ahead(job)] = true;
        while (!job->all.run->in_turn && advance(job))
            ;
        if (job->all.run->in_turn || job->told == job->end)
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
    while (job->told < job->end && !job->all.stopped) {
        bool tells = job->all.run->in_turn && advance(job);
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
        const int ends = job->all.run->tell(job->all.run->context, done, atomic_load(&job->all.flags));
        pthread_mutex_lock(&job->lock);
        if (ends)
            stop(job, FILES_ENDED);
    }
}

/* Opens what the way needs and starts the threads. */
static void
begin(struct crew *crew, enum way way)
{
    struct job *job = crew->job;
    const struct files_run *run = job->all.run;
    sigset_t before;
    int error = 0;
    job->all.way = run->tiles.layout.ndim == 1 ? way : WAY_CACHE; /* the others are for tiles of one run */
    for (int k = 0; k < LAYOUT_OPERANDS; k++) {
        job->all.file[k] = (struct file){.plain = run->descriptor[k], .direct = -1};
        if (job->all.way == WAY_DIRECT)
            file_open_direct(&job->all.file[k], k == LAYOUT_SUM);
    }
    signals_block(&before);
    while (crew->count < run->threads && !error) {
        struct worker *worker = &crew->worker[crew->count];
        *worker = (struct worker){.job = job, .number = crew->count};
        error = pthread_create(&worker->thread, NULL, work, worker);
        if (!error) {
            pthread_setname_np(worker->thread, "vecadd-files");
            crew->count++;
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (crew->count == 0)
        job->outcome->error = error;
}

/* Waits for the threads and closes what was opened. */
static void
finish(struct crew *crew)
{
    for (int i = 0; i < crew->count; i++)
        pthread_join(crew->worker[i].thread, NULL);
    for (int k = 0; k < LAYOUT_OPERANDS; k++)
        file_close_direct(&crew->job->all.file[k]);
}

static void
abandon(void *argument)
{
    struct crew *crew = argument;
    pthread_mutex_lock(&crew->job->lock);
    stop(crew->job, FILES_ENDED);
    pthread_mutex_unlock(&crew->job->lock);
    finish(crew);
}

/* Tells the caller until the threads have done their work. `tell` may not return: CPython up to 3.13 ends a thread that
 * asks for the GIL while the interpreter finalises, by pthread_exit. The threads then end before the stack that the job
 * lies on goes. Those that wait for the GIL themselves are ended in the same way, so that no one waits for ever. */
static void
attend(struct crew *crew)
{
    pthread_cleanup_push(abandon, crew);
    pthread_mutex_lock(&crew->job->lock);
    follow(crew->job);
    pthread_mutex_unlock(&crew->job->lock);
    pthread_cleanup_pop(false);
}

/* Adds the stretches from job->told to `end` that way. Returns the seconds, those of the disk among them where it is
 * waited for. */
static double
go(struct job *job, size_t end, enum way way, bool to_the_disk)
{
    struct crew crew = {.job = job};
    const double begun = now_seconds();
    if (job->outcome->error || job->told >= end)
        return 0;
    const struct files_run *run = job->all.run;
    const size_t first = job->told;
    job->end = end;
    begin(&crew, way);
    if (crew.count > 0)
        attend(&crew);
    finish(&crew);
    if (to_the_disk) {
        struct tile tile;
        tiles_at(&run->tiles, first * run->together, &tile);
        const off_t place = stretch_place(run, &tile);
        tiles_at(&run->tiles, end * run->together, &tile);
        (void)sync_file_range(run->descriptor[LAYOUT_SUM], place, stretch_place(run, &tile) - place,
                              SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    }
    return now_seconds() - begun;
}

/* Goes both ways in turns over the first part of a long sum. Returns the quicker one; for a short sum run->way. */
static enum way
compare(struct job *job)
{
    const struct files_run *run = job->all.run;
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
    struct job job = {.all.run = run, .outcome = outcome};
    job.all.memory = (char *)(((uintptr_t)memory + FILE_PAGE - 1) / FILE_PAGE * FILE_PAGE);
    *outcome = (struct files_outcome){.way = WAY_COUNT};
    pthread_mutex_init(&job.lock, NULL);
    pthread_cond_init(&job.room, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&job.news, &attributes);
    pthread_condattr_destroy(&attributes);

    go(&job, run->stretches, compare(&job), false);
    if (!outcome->error && run->tell(run->context, job.done, atomic_load(&job.all.flags)))
        outcome->error = FILES_ENDED;

    pthread_cond_destroy(&job.news);
    pthread_cond_destroy(&job.room);
    pthread_mutex_destroy(&job.lock);
}
