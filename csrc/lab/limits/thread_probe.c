/* What several threads of the host do at once: wake, copy memory into page-locked slots, and queue work on the device,
 * where the driver may let only one of them in at a time. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/kernels.h"
#include "gpu/device.h"
#include "lab/base/probes.h"
#include "lab/limits/probe.h"

enum {
    STAGE = 256 << 10, /* bytes that a thread copies at a time: they stay in its cache */
    CYCLES = 32,       /* of a copy up, a kernel and a copy down */
    CALLS_OF_A_CYCLE = 3,
    SMALL = 4, /* bytes of those copies */
    ROUNDS = 5,
    IDLE = 2000000, /* ns before a round: what spins for work has gone to sleep */
    MOST_THREADS = 256,
};

enum task { ANSWER, FILL, COPY, QUEUE, END };

struct member {
    struct crew *crew;
    int number;
    struct probe probe; /* a stream, and SMALL bytes of the device */
    void *stage;        /* page-locked */
    void *source;       /* ordinary, crew->bytes: a part of what all have */
    cudaError_t error;
};

struct crew {
    int device, threads, started; /* `started` beside the caller */
    size_t bytes;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned turn; /* counts the tasks given out */
    enum task task;
    int members; /* that take part in it */
    atomic_int working;
    pthread_t handles[MOST_THREADS];
    struct member member[MOST_THREADS];
};

static cudaError_t
queue_cycles(const struct member *member)
{
    cudaError_t error = cudaSuccess;
    void *device = member->probe.memory;
    cudaStream_t stream = member->probe.stream;
    for (int i = 0; i < CYCLES && error == cudaSuccess; i++) {
        error = cudaMemcpyAsync(device, member->stage, SMALL, cudaMemcpyHostToDevice, stream);
        if (error == cudaSuccess)
            error = limits_empty_launch(1, 1, 0, stream);
        if (error == cudaSuccess)
            error = cudaMemcpyAsync(member->stage, device, SMALL, cudaMemcpyDeviceToHost, stream);
    }
    return error;
}

static void
do_task(struct member *member, enum task task)
{
    const struct crew *crew = member->crew;
    if (task == FILL)
        memset(member->source, 1, crew->bytes);
    if (task == COPY)
        for (size_t at = 0; at + STAGE <= crew->bytes; at += STAGE)
            memcpy(member->stage, (const char *)member->source + at, STAGE);
    if (task == QUEUE)
        member->error = queue_cycles(member);
}

static void *
member_main(void *argument)
{
    struct member *member = argument;
    struct crew *crew = member->crew;
    const cudaError_t error = cudaSetDevice(crew->device);
    for (unsigned seen = 0;;) {
        pthread_mutex_lock(&crew->lock);
        while (crew->turn == seen)
            pthread_cond_wait(&crew->changed, &crew->lock);
        seen = crew->turn;
        const enum task task = crew->task;
        const bool takes_part = member->number < crew->members;
        pthread_mutex_unlock(&crew->lock);
        if (task == END)
            return NULL;
        if (!takes_part)
            continue;
        member->error = error;
        if (error == cudaSuccess)
            do_task(member, task);
        atomic_fetch_sub(&crew->working, 1);
    }
}

static void
give_out(struct crew *crew, enum task task, int members)
{
    pthread_mutex_lock(&crew->lock);
    crew->turn++;
    crew->task = task;
    crew->members = members;
    atomic_store(&crew->working, members - 1);
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->lock);
}

/* Seconds until the last of so many members, the caller first, has done its part. What they queued is waited for
 * outside of the clock. */
static int
run_task(struct crew *crew, enum task task, int members, double *seconds, struct status *status)
{
    const double begin = now_seconds();
    give_out(crew, task, members);
    do_task(&crew->member[0], task);
    while (atomic_load(&crew->working) > 0)
        sched_yield();
    *seconds = now_seconds() - begin;
    int result = 0;
    for (int i = 0; i < members && task == QUEUE; i++) {
        cudaError_t error = crew->member[i].error;
        const cudaError_t waited = stream_wait(crew->member[i].probe.stream);
        if (error == cudaSuccess)
            error = waited;
        if (error != cudaSuccess && result == 0)
            result = device_status(status, error, "cudaMemcpyAsync");
    }
    return result;
}

/* The median of the rounds after a first one, each after a rest. */
static int
measure(struct crew *crew, enum task task, int members, double *seconds, struct status *status)
{
    static const struct timespec idle = {.tv_nsec = IDLE};
    double each[ROUNDS];
    for (int round = -1; round < ROUNDS; round++) {
        if (task == ANSWER)
            nanosleep(&idle, NULL);
        if (run_task(crew, task, members, &each[round < 0 ? 0 : round], status) < 0)
            return -1;
    }
    *seconds = probe_median(each, ROUNDS);
    return 0;
}

static int
crew_open(struct crew *crew, const struct device_scope *scope, struct status *status)
{
    for (int i = 0; i < crew->threads; i++) {
        struct member *member = &crew->member[i];
        member->crew = crew;
        member->number = i;
        if (probe_open(&member->probe, scope, SMALL, status) < 0)
            return -1;
        const cudaError_t error = cudaHostAlloc(&member->stage, STAGE, cudaHostAllocPortable);
        if (error != cudaSuccess) {
            member->stage = NULL;
            return device_status(status, error, "cudaHostAlloc");
        }
        member->source = malloc(crew->bytes);
        if (!member->source)
            return status_set(status, STATUS_MEMORY, "there is no memory for a probe of %zu bytes", crew->bytes);
    }
    while (crew->started < crew->threads - 1 &&
           pthread_create(&crew->handles[crew->started], NULL, member_main, &crew->member[crew->started + 1]) == 0)
        crew->started++;
    crew->threads = crew->started + 1;
    return 0;
}

static void
crew_close(struct crew *crew, int members)
{
    if (crew->started)
        give_out(crew, END, 1);
    for (int i = 0; i < crew->started; i++)
        pthread_join(crew->handles[i], NULL);
    for (int i = 0; i < members; i++) {
        struct member *member = &crew->member[i];
        if (member->stage)
            device_ignore(cudaFreeHost(member->stage));
        free(member->source);
        probe_close(&member->probe);
    }
}

int
limits_crew(int device, int threads, size_t bytes, struct crew_limits *limits, struct status *status)
{
    struct device_scope scope;
    if (device_enter_relaxed(&scope, device, status) < 0)
        return -1;

    int result = -1;
    *limits = (struct crew_limits){0};
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    struct crew *crew = calloc(1, sizeof *crew);
    if (!crew) {
        status_set(status, STATUS_MEMORY, "there is no memory for a probe of %d threads", threads);
        goto left;
    }
    crew->device = scope.device;
    crew->threads = threads;
    const size_t each = bytes / (size_t)threads;
    crew->bytes = each < STAGE ? STAGE : each / STAGE * STAGE;
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->changed, NULL);
    double one = 0, all = 0, filled;
    if (crew_open(crew, &scope, status) < 0 || run_task(crew, FILL, crew->threads, &filled, status) < 0 ||
        measure(crew, ANSWER, crew->threads > 1 ? 2 : 1, &limits->wake_one, status) < 0 ||
        measure(crew, ANSWER, crew->threads, &limits->wake, status) < 0 || measure(crew, COPY, 1, &one, status) < 0 ||
        measure(crew, COPY, crew->threads, &all, status) < 0 ||
        measure(crew, QUEUE, 1, &limits->call_one, status) < 0 ||
        measure(crew, QUEUE, crew->threads, &limits->call_all, status) < 0)
        goto done;
    limits->copy_one = one > 0 ? (double)crew->bytes / one : 0;
    limits->copy_all = all > 0 ? (double)crew->bytes * crew->threads / all : 0;
    limits->call_one /= CYCLES * CALLS_OF_A_CYCLE;
    limits->call_all /= CYCLES * CALLS_OF_A_CYCLE;
    result = 0;
done:
    crew_close(crew, threads);
    pthread_cond_destroy(&crew->changed);
    pthread_mutex_destroy(&crew->lock);
    free(crew);
left:
    device_leave(&scope);
    return result;
}
