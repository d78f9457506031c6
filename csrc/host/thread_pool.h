/* The thread pool's shared state (threads.c, workers.c): the open job, each worker's part of it, and the words that
 * workers sleep on. */
#ifndef VECADD_HOST_THREAD_POOL_H
#define VECADD_HOST_THREAD_POOL_H

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/fpenv.h"
#include "host/callers_cpu.h"
#include "host/slices.h"
#include "host/threads_count.h"

struct threads_job;

/* WAKING: a caller has found the worker asleep and sets its affinity mask; the worker waits until it is AWAKE. */
enum worker_state { AWAKE, ASLEEP, WAKING };

/* A job's number is even. A worker writes it to `inside` before it looks at the job, and then makes sure that the job
 * is still open; a caller that has closed its job waits for all who are inside. So no caller waits for a worker that
 * has not begun, and no worker touches a job that is over. A caller that tires of spinning adds AWAITED and sleeps
 * there.
 */
enum { NO_JOB = 0, AWAITED = 1, STOPPING = 1 };

struct worker {
    alignas(2 * CACHE_LINE) atomic_uint inside;
    atomic_uint state;  /* enum worker_state: the futex that it sleeps on */
    atomic_llong woken; /* when a caller last woke it: now_ns() */
    int number;
    struct thread_pool *pool;
    pthread_t thread;
    pid_t id; /* the system's, for a caller that has joined it */
    struct kept_off kept_off;
};

struct thread_pool {
    atomic_bool busy;   /* the thread that set it owns the fields that are not atomic */
    atomic_int started; /* workers 1 ... started exist; the caller is number 0 */
    unsigned number;    /* of the last job */
    atomic_bool spins;  /* the last job had a processor for every thread */
    cpu_set_t mask;     /* of a caller that wakes or starts workers: theirs too; empty before the first one */

    /* Any thread uses these. */
    atomic_int awake;                /* workers that spin or work */
    atomic_llong burst_began, ended; /* of jobs: now_ns() */

    /* What the workers read; the caller writes it while no job is open. */
    alignas(2 * CACHE_LINE) atomic_uint open; /* the job's number, NO_JOB or STOPPING */
    int threads;
    bool keeps; /* as the job asks, if its workers are all awake */
    const struct threads_job *job;
    fpenv_word control;
    atomic_int callers_cpu;                             /* of the last job */
    alignas(CACHE_LINE) atomic_uchar part[THREADS_MAX]; /* each worker's, from 1 on; 0: it has none */
    alignas(CACHE_LINE) atomic_uint flags;

    struct worker worker[THREADS_MAX];
    struct slice slice[THREADS_MAX];
};

#endif
