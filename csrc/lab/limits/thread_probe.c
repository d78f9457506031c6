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
    MAX_THREADS = 256,
};

enum task { ANSWER, FILL, COPY, QUEUE, END };

struct member {
    struct thread_probe *thread_probe;
    int number;
    struct probe probe; /* a stream, and SMALL bytes of the device */
    void *stage;        /* page-locked */
    void *source;       /* ordinary, crew->bytes: a part of what all have */
    cudaError_t error;
};

struct thread_probe {
    int device, threads, started; /* `started` beside the caller */
    size_t bytes;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned turn; /* counts the tasks given out */
    enum task task;
    int members; /* that take part in it */
    atomic_int working;
    pthread_t handles[MAX_THREADS];
    struct member member[MAX_THREADS];
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
    const struct thread_probe *thread_probe = member->thread_probe;
    if (task == FILL)
        memset(member->source, 1, thread_probe->bytes);
    if (task == COPY)
        for (size_t at = 0; at + STAGE <= thread_probe->bytes; at += STAGE)
            memcpy(member->stage, (const char *)member->source + at, STAGE);
    if (task == QUEUE)
        member->error = queue_cycles(member);
}

static void *
member_main(void *argument)
{
    struct member *member = argument;
    struct thread_probe *thread_probe = member->thread_probe;
    const cudaError_t error = cudaSetDevice(thread_probe->device);
    for (unsigned seen = 0;;) {
        pthread_mutex_lock(&thread_probe->lock);
        while (thread_probe->turn == seen)
            pthread_cond_wait(&thread_probe->changed, &thread_probe->lock);
        seen = thread_probe->turn;
        const enum task task = thread_probe->task;
        const bool takes_part = member->number < thread_probe->members;
        pthread_mutex_unlock(&thread_probe->lock);
        if (task == END)
            return NULL;
        if (!takes_part)
            continue;
        member->error = error;
        if (error == cudaSuccess)
            do_task(member, task);
        atomic_fetch_sub(&thread_probe->working, 1);
    }
}

static void
give_out(struct thread_probe *thread_probe, enum task task, int members)
{
    pthread_mutex_lock(&thread_probe->lock);
    thread_probe->turn++;
    thread_probe->task = task;
    thread_probe->members = members;
    atomic_store(&thread_probe->working, members - 1);
    pthread_cond_broadcast(&thread_probe->changed);
    pthread_mutex_unlock(&thread_probe->lock);
}

/* Seconds until the last of so many members, the caller first, has done its part. What they queued is waited for
 * outside of the clock. */
static int
run_task(struct thread_probe *thread_probe, enum task task, int members, double *seconds, struct status *status)
{
    const double begin = now_seconds();
    give_out(thread_probe, task, members);
    do_task(&thread_probe->member[0], task);
    while (atomic_load(&thread_probe->working) > 0)
        sched_yield();
    *seconds = now_seconds() - begin;
    int result = 0;
    for (int i = 0; i < members && task == QUEUE; i++) {
        cudaError_t error = thread_probe->member[i].error;
        const cudaError_t waited = stream_wait(thread_probe->member[i].probe.stream);
        if (error == cudaSuccess)
            error = waited;
        if (error != cudaSuccess && result == 0)
            result = device_status(status, error, "cudaMemcpyAsync");
    }
    return result;
}

/* The median of the rounds after a first one, each after a rest. */
static int
measure(struct thread_probe *thread_probe, enum task task, int members, double *seconds, struct status *status)
{
    static const struct timespec idle = {.tv_nsec = IDLE};
    double each[ROUNDS];
    for (int round = -1; round < ROUNDS; round++) {
        if (task == ANSWER)
            nanosleep(&idle, NULL);
        if (run_task(thread_probe, task, members, &each[round < 0 ? 0 : round], status) < 0)
            return -1;
    }
    *seconds = probe_median(each, ROUNDS);
    return 0;
}

static int
crew_open(struct thread_probe *thread_probe, const struct device_scope *scope, struct status *status)
{
    for (int i = 0; i < thread_probe->threads; i++) {
        struct member *member = &thread_probe->member[i];
        member->thread_probe = thread_probe;
        member->number = i;
        if (probe_open(&member->probe, scope, SMALL, status) < 0)
            return -1;
        const cudaError_t error = cudaHostAlloc(&member->stage, STAGE, cudaHostAllocPortable);
        if (error != cudaSuccess) {
            member->stage = NULL;
            return device_status(status, error, "cudaHostAlloc");
        }
        member->source = malloc(thread_probe->bytes);
        if (!member->source)
            return status_set(status, STATUS_MEMORY, "there is no memory for a probe of %zu bytes",
                              thread_probe->bytes);
    }
    while (thread_probe->started < thread_probe->threads - 1 &&
           pthread_create(&thread_probe->handles[thread_probe->started], NULL, member_main,
                          &thread_probe->member[thread_probe->started + 1]) == 0)
        thread_probe->started++;
    thread_probe->threads = thread_probe->started + 1;
    return 0;
}

static void
crew_close(struct thread_probe *thread_probe, int members)
{
    if (thread_probe->started)
        give_out(thread_probe, END, 1);
    for (int i = 0; i < thread_probe->started; i++)
        pthread_join(thread_probe->handles[i], NULL);
    for (int i = 0; i < members; i++) {
        struct member *member = &thread_probe->member[i];
        if (member->stage)
            device_ignore(cudaFreeHost(member->stage));
        free(member->source);
        probe_close(&member->probe);
    }
}

int
limits_thread_probe(int device, int threads, size_t bytes, struct thread_probe_limits *limits, struct status *status)
{
    struct device_scope scope;
    if (device_enter_relaxed(&scope, device, status) < 0)
        return -1;

    int result = -1;
    *limits = (struct thread_probe_limits){0};
    threads = threads < MAX_THREADS ? threads : MAX_THREADS;
    struct thread_probe *thread_probe = calloc(1, sizeof *thread_probe);
    if (!thread_probe) {
        status_set(status, STATUS_MEMORY, "there is no memory for a probe of %d threads", threads);
        goto left;
    }
    thread_probe->device = scope.device;
    thread_probe->threads = threads;
    const size_t each = bytes / (size_t)threads;
    thread_probe->bytes = each < STAGE ? STAGE : each / STAGE * STAGE;
    pthread_mutex_init(&thread_probe->lock, NULL);
    pthread_cond_init(&thread_probe->changed, NULL);
    double one = 0, all = 0, filled;
    if (crew_open(thread_probe, &scope, status) < 0 ||
        run_task(thread_probe, FILL, thread_probe->threads, &filled, status) < 0 ||
        measure(thread_probe, ANSWER, thread_probe->threads > 1 ? 2 : 1, &limits->wake_one, status) < 0 ||
        measure(thread_probe, ANSWER, thread_probe->threads, &limits->wake, status) < 0 ||
        measure(thread_probe, COPY, 1, &one, status) < 0 ||
        measure(thread_probe, COPY, thread_probe->threads, &all, status) < 0 ||
        measure(thread_probe, QUEUE, 1, &limits->call_one, status) < 0 ||
        measure(thread_probe, QUEUE, thread_probe->threads, &limits->call_all, status) < 0)
        goto done;
    limits->copy_one = one > 0 ? (double)thread_probe->bytes / one : 0;
    limits->copy_all = all > 0 ? (double)thread_probe->bytes * thread_probe->threads / all : 0;
    limits->call_one /= CYCLES * CALLS_OF_A_CYCLE;
    limits->call_all /= CYCLES * CALLS_OF_A_CYCLE;
    result = 0;
done:
    crew_close(thread_probe, threads);
    pthread_cond_destroy(&thread_probe->changed);
    pthread_mutex_destroy(&thread_probe->lock);
    free(thread_probe);
left:
    device_leave(&scope);
    return result;
}
