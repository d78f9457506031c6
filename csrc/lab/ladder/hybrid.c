/* hybrid: processor and GPU take blocks from the two ends of the arrays until they meet.
 *
 * Nobody has to know beforehand which share is whose. 1e8 float32, page-locked, 15 threads and a GPU: 7.07 ms, where 16
 * threads alone take 7.74 and the GPU alone 15.3; with ordinary memory nothing is gained, because the memory itself is
 * the bound and the GPU's way crosses it twice as often. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "gpu/device.h"
#include "host/add.h"
#include "host/threads.h"
#include "lab/ladder/transfer_rung.h"

/* Bytes of c. The processor's block is long enough for streaming stores, the GPU's for the link: 4 MiB go at 53.5 of 55
 * GB/s. Ordinary memory is copied into page-locked slots first, which at 1 MiB stay in the cache. */
enum {
    HOST_BLOCK = 1 << 20,
    PINNED_CHUNK = 4 << 20,
    STAGED_CHUNK = 1 << 20,
    SLOTS = 2,
    PARAM_THREADS = 2,
    MAX_THREADS = 256,
};

struct hybrid_slot {
    cudaStream_t stream;
    void *device[3];
    void *host[2];       /* page-locked: a's chunk, which the sum comes back over, and b's; NULL where none is needed */
    size_t begin, count; /* components in flight; count is 0 when there are none */
};

struct hybrid {
    struct transfer_run run;
    bool a_pinned, b_pinned, c_pinned;
    host_add_function *add;
    size_t block, chunk; /* components */
    struct hybrid_slot slots[SLOTS];

    pthread_mutex_t lock;
    size_t front, back; /* components [front, back) are nobody's yet */
    bool failed;        /* *status is taken */
    struct status *status;
};

/* Takes at most `count` components from one end; 0 where they have met or the GPU has failed. */
static size_t
take(struct hybrid *job, bool from_back, size_t most, size_t *begin)
{
    pthread_mutex_lock(&job->lock);
    const size_t left = job->failed ? 0 : job->back - job->front;
    /* The GPU's chunks begin at multiples of their length, so that only the last components of the arrays are a short
     * one.
     */
    const size_t wish = from_back && job->back % most ? job->back % most : most;
    const size_t count = left < wish ? left : wish;
    *begin = from_back ? job->back - count : job->front;
    if (from_back)
        job->back -= count;
    else
        job->front += count;
    pthread_mutex_unlock(&job->lock);
    return count;
}

static void
fail(struct hybrid *job, const struct status *status)
{
    pthread_mutex_lock(&job->lock);
    if (!job->failed)
        *job->status = *status;
    job->failed = true;
    pthread_mutex_unlock(&job->lock);
}

static bool
all_pinned(const struct hybrid *job)
{
    return job->a_pinned && job->b_pinned && job->c_pinned;
}

static int
slot_open(struct hybrid *job, struct hybrid_slot *slot, struct status *status)
{
    const size_t bytes = job->chunk * job->run.width;
    cudaError_t error = cudaStreamCreateWithFlags(&slot->stream, cudaStreamNonBlocking);
    if (error != cudaSuccess) {
        slot->stream = NULL;
        return device_status(status, error, "cudaStreamCreateWithFlags");
    }
    for (int i = 0; i < 3; i++)
        if (pool_allocate(&job->run.scope, slot->stream, bytes, &slot->device[i], status) < 0)
            return -1;
    for (int i = 0; i < 2 && !all_pinned(job); i++) {
        error = cudaHostAlloc(&slot->host[i], bytes, cudaHostAllocPortable);
        if (error != cudaSuccess) {
            slot->host[i] = NULL;
            return device_status(status, error, "cudaHostAlloc");
        }
    }
    return 0;
}

/* Nothing is in flight. */
static void
slot_close(struct hybrid_slot *slot)
{
    for (int i = 0; i < 3; i++)
        pool_release(slot->stream, slot->device[i]);
    for (int i = 0; i < 2; i++)
        if (slot->host[i])
            device_ignore(cudaFreeHost(slot->host[i]));
    if (slot->stream)
        device_ignore(cudaStreamDestroy(slot->stream));
    *slot = (struct hybrid_slot){0};
}

static int
slot_queue(struct hybrid *job, struct hybrid_slot *slot, size_t number, size_t begin, size_t count,
           struct status *status)
{
    const struct rung_call *call = job->run.call;
    const size_t offset = begin * job->run.width, bytes = count * job->run.width;
    struct transfer_chunk chunk = {
        .a = (const char *)call->a + offset,
        .b = (const char *)call->b + offset,
        .c = (char *)call->c + offset,
        .device = {slot->device[0], slot->device[1], slot->device[2]},
        .count = count,
        .number = number,
        .stream = slot->stream,
        .stream_number = (int)(slot - job->slots),
    };
    if (!job->a_pinned)
        chunk.a = memcpy(slot->host[0], chunk.a, bytes);
    if (!job->b_pinned)
        chunk.b = memcpy(slot->host[1], chunk.b, bytes);
    if (!job->c_pinned)
        chunk.c = slot->host[0];
    slot->begin = begin;
    slot->count = count;
    return transfer_chunk_queue(&job->run, &chunk, status);
}

/* Waits for the chunk in flight and hands its sum over, if that is wanted. */
static int
slot_drain(struct hybrid *job, struct hybrid_slot *slot, bool wanted, struct status *status)
{
    const size_t count = slot->count;
    slot->count = 0;
    if (count == 0)
        return 0;
    const cudaError_t error = stream_wait(slot->stream);
    if (!wanted)
        return 0;
    if (error != cudaSuccess)
        return device_status(status, error, "cudaStreamSynchronize");
    if (!job->c_pinned)
        memcpy((char *)job->run.call->c + slot->begin * job->run.width, slot->host[0], count * job->run.width);
    return 0;
}

/* The GPU's part: chunks from the back, while one slot's chunk flies the other is filled. */
static void
feed_gpu(struct hybrid *job)
{
    struct device_scope scope;
    struct status status;
    if (device_enter_relaxed(&scope, job->run.scope.device, &status) < 0) {
        fail(job, &status);
        return;
    }
    int result = 0;
    for (size_t turn = 0; result == 0; turn++) {
        struct hybrid_slot *slot = &job->slots[turn % SLOTS];
        size_t begin, count;
        result = slot_drain(job, slot, true, &status);
        if (result < 0 || (count = take(job, true, job->chunk, &begin)) == 0)
            break;
        result = slot_queue(job, slot, turn, begin, count, &status);
    }
    for (int i = 0; i < SLOTS; i++)
        if (slot_drain(job, &job->slots[i], result == 0, &status) < 0)
            result = -1;
    if (result < 0)
        fail(job, &status);
    device_leave(&scope);
}

static void
add_on_host(struct hybrid *job)
{
    const struct rung_call *call = job->run.call;
    size_t begin, count;
    while ((count = take(job, false, job->block, &begin)) > 0) {
        const size_t offset = begin * job->run.width;
        job->add((const char *)call->a + offset, (const char *)call->b + offset, (char *)call->c + offset, count);
    }
}

/* threads_body: part 0 is the GPU's and the caller's own, the others a thread of the processor each. */
static void
run_parts(void *context, size_t begin, size_t end, int worker)
{
    (void)worker;
    for (size_t part = begin; part < end; part++) {
        if (part == 0)
            feed_gpu(context);
        else
            add_on_host(context);
    }
}

static int
hybrid_prepare(struct hybrid *job, struct status *status)
{
    const struct rung_call *call = job->run.call;
    const size_t width = job->run.width, bytes = job->run.bytes;
    const struct host_simd *simd = host_simd_chosen(status);
    if (!simd || transfer_is_pinned(call->a, bytes, &job->a_pinned, status) < 0 ||
        transfer_is_pinned(call->b, bytes, &job->b_pinned, status) < 0 ||
        transfer_is_pinned(call->c, bytes, &job->c_pinned, status) < 0)
        return -1;
    const bool in_place = call->c == call->a || call->c == call->b;
    const struct host_schedule schedule = host_schedule_for(call->component, call->n, in_place);
    job->add = host_loop(simd, &schedule, call->component, schedule.streaming);
    job->block = HOST_BLOCK / width;
    job->chunk = (all_pinned(job) ? PINNED_CHUNK : STAGED_CHUNK) / width;
    if (job->chunk > call->n)
        job->chunk = call->n;
    job->back = call->n;
    return 0;
}

static int
open_slots(struct hybrid *job, struct status *status)
{
    for (int i = 0; i < SLOTS; i++)
        if (slot_open(job, &job->slots[i], status) < 0)
            return -1;
    return 0;
}

static void
close_slots(struct hybrid *job)
{
    for (int i = 0; i < SLOTS; i++)
        slot_close(&job->slots[i]);
}

static int
run_hybrid(const struct rung_call *call, struct status *status)
{
    struct hybrid job = {.lock = PTHREAD_MUTEX_INITIALIZER, .status = status};
    struct timeline *timeline = call->timeline;
    const bool inside = call->params[PARAM_ALLOCATES];
    const int threads = call->params[PARAM_THREADS] ? call->params[PARAM_THREADS] : threads_available();
    if (call->n == 0)
        return 0;
    int result = -1;
    if (transfer_run_enter(&job.run, "hybrid", call, false, status) < 0 || hybrid_prepare(&job, status) < 0 ||
        timeline_open(timeline, 4 * (call->n / job.chunk + 2) + 2, status) < 0 ||
        (!inside && open_slots(&job, status) < 0))
        goto done;

    transfer_clock_start(&job.run);
    if (inside) {
        const size_t entry = timeline_begin_host(timeline, TIMELINE_ALLOCATE);
        const int opened = open_slots(&job, status);
        timeline_end_host(timeline, entry);
        if (opened < 0)
            goto done;
    }
    threads_run(threads, (size_t)threads, 1, run_parts, &job);
    result = job.failed ? -1 : 0;
    if (inside) {
        const size_t entry = timeline_begin_host(timeline, TIMELINE_FREE);
        close_slots(&job);
        timeline_end_host(timeline, entry);
    }
    transfer_clock_stop(&job.run);
done:
    close_slots(&job);
    return transfer_run_leave(&job.run, result, status);
}

const struct rung rung_hybrid = {
    .name = "hybrid",
    .kind = RUNG_TRANSFER,
    .after = "tuned_transfer",
    .changes = "the processor adds too, from the front, while the GPU works from the back; they meet",
    .tested = "double",
    .stages = STAGES_SHARED,
    .components = EVERY_LANE,
    .params = {KERNEL_PARAM(KERNEL_TUNED),
               ALLOCATES_PARAM(0),
               {"threads", "one of which feeds the GPU; 0: as many as there are", 0, 0, MAX_THREADS}},
    .run = run_hybrid,
};
