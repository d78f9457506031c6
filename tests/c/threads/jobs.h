/* Jobs for the host's threads: one that counts how often each index is visited, one that notes which workers took part.
 */
#ifndef VECADD_TEST_JOBS_H
#define VECADD_TEST_JOBS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "host/schedule.h"
#include "host/threads.h"

enum { MANY = 10000, WORKERS = 8, PATIENCE_MS = 10000 };

struct visits {
    atomic_int count[MANY];
    size_t n, block;
    int threads;
    atomic_int outside; /* blocks too long, workers out of range */
};

static inline void
visit(void *context, size_t begin, size_t end, int worker)
{
    struct visits *visits = context;
    const bool whole = begin == 0 && end == visits->n; /* the caller alone */
    if (end <= begin || (end - begin > visits->block && !whole) || worker < 0 || worker >= visits->threads)
        atomic_fetch_add(&visits->outside, 1);
    for (size_t i = begin; i < end; i++)
        atomic_fetch_add(&visits->count[i], 1);
}

/* Whether [0, n) is visited once each and nothing beyond. */
static inline bool
visits_each_once(int threads, size_t n, size_t block)
{
    struct visits *visits = calloc(1, sizeof *visits);
    if (visits == NULL)
        abort();
    visits->n = n;
    visits->block = block;
    visits->threads = threads > 1 ? threads : 1;
    threads_run_all(threads, n, block, visit, visits);
    bool right = atomic_load(&visits->outside) == 0;
    for (size_t i = 0; i < MANY; i++)
        right = right && atomic_load(&visits->count[i]) == (i < n);
    free(visits);
    return right;
}

/* A job for the workers that are awake; `alone` does it where none is. */
static inline void
run_short(int threads, size_t n, threads_body *body, void (*alone)(void *context), void *context)
{
    const struct fallback_loop fallback = {alone, context};
    const struct host_schedule schedule = {.threads = threads, .starts = 1, .block = 1};
    threads_run(&schedule, n, body, context, &fallback);
}

static inline void
sleep_us(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

/* Whether `threads` threads took part in a job that lasts until they have, or for 10 s. */
struct roll_call {
    int threads;
    atomic_uint present; /* a bit each */
};

static inline bool
are_all_present(const struct roll_call *call)
{
    return atomic_load(&call->present) == (1u << call->threads) - 1;
}

static inline void
answer(void *context, size_t begin, size_t end, int worker)
{
    struct roll_call *call = context;
    (void)begin, (void)end;
    atomic_fetch_or(&call->present, 1u << worker);
    for (int ms = 0; ms < PATIENCE_MS && !are_all_present(call); ms++)
        sleep_us(1000);
}

static inline bool
all_threads_take_part(int threads)
{
    struct roll_call call = {.threads = threads};
    threads_run_all(threads, (size_t)threads, 1, answer, &call);
    return are_all_present(&call);
}

/* Whether all workers sleep in the end: one that has lost its processor stays awake until it has it again. */
static inline bool
all_workers_fall_asleep(void)
{
    for (int ms = 0; ms < PATIENCE_MS; ms++) {
        sleep_us(1000);
        if (threads_awake() == 0)
            return true;
    }
    return false;
}

#endif
