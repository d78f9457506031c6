/* Jobs for the host's threads: one that counts how often each index is visited, one that notes which workers took part.
 */
#ifndef VECADD_TEST_JOBS_H
#define VECADD_TEST_JOBS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "host/threads.h"

enum { MANY = 10000, WORKERS = 8 };

struct visits {
    atomic_int of[MANY];
    size_t block;
    int threads;
    atomic_int outside; /* blocks too long, workers out of range */
};

static inline void
visit(void *context, size_t begin, size_t end, int worker)
{
    struct visits *visits = context;
    if (end <= begin || end - begin > visits->block || worker < 0 || worker >= visits->threads)
        atomic_fetch_add(&visits->outside, 1);
    for (size_t i = begin; i < end; i++)
        atomic_fetch_add(&visits->of[i], 1);
}

/* Whether [0, n) is visited once each and nothing beyond. */
static inline bool
visits_each_once(int threads, size_t n, size_t block)
{
    struct visits *visits = calloc(1, sizeof *visits);
    if (visits == NULL)
        abort();
    visits->block = block;
    visits->threads = threads > 1 ? threads : 1;
    threads_run(threads, n, block, visit, visits);
    bool right = atomic_load(&visits->outside) == 0;
    for (size_t i = 0; i < MANY; i++)
        right = right && atomic_load(&visits->of[i]) == (i < n);
    free(visits);
    return right;
}

/* A job of which nothing is known: it has the workers that are awake. */
static inline void
run_short(int threads, size_t n, threads_body *body, threads_body *alone, void *context)
{
    const struct threads_job job = {
        .threads = threads, .n = n, .block = 1, .body = body, .alone = alone, .context = context};
    threads_run_job(&job);
}

static inline void
sleep_us(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static inline void
mark_worker(void *context, size_t begin, size_t end, int worker)
{
    (void)begin, (void)end;
    sleep_us(2000);
    atomic_fetch_or((atomic_uint *)context, 1u << worker);
}

#endif
