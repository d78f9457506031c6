#include "transfer.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "device_state.h"
#include "kernels.h"
#include "runtime.h"
#include "threads.h"

/* Bytes of one operand's chunk.
 *
 * Pipeline, 1e8 float32 over PCIe 5: chunks that double from 512 KiB to 16 MiB and shrink again at the end take 15.3
 * ms, equal ones of 8 MiB 15.45, of 1 MiB 16.2. Small first and last chunks shorten the time in which only one
 * direction of the link works.
 *
 * Staged, 16 threads: 1 MiB 17.6 ms, 512 KiB 19.6, 4 MiB 26, because the slots no longer stay in the cache. A smaller
 * transfer is cut into two chunks a thread, but not below what the link needs to get going: 64 KiB go at 20 GB/s, 1 MiB
 * at 49. */
enum {
    PIPELINE_LEAST = 512 << 10,
    PIPELINE_MOST = 16 << 20,
    STAGED_LEAST = 128 << 10,
    STAGED_MOST = 1 << 20,
    PAGE = 4096,
    DEVICE_HEADER = 256, /* the flag word's room: what follows keeps the allocation's alignment */
};

/* One chunk's place on the way through the device, in the order of its own stream. */
struct slot {
    cudaStream_t stream;
    void *host;          /* pinned, 2 * STAGED_MOST: a's chunk, which the sum comes back over, then b's */
    void *device;        /* the flag word, a's chunk, which becomes the sum, then b's; only during a transfer */
    size_t begin, count; /* staged: the lanes in flight; count is 0 when there are none */
};

struct transfer_ring {
    int device; /* of the streams; the pinned memory serves every device */
    int size;
    struct slot slots[];
};

struct transfer {
    const struct plan *plan;
    const struct transfer_options *options;
    int device;
    size_t width; /* bytes a lane */
    bool a_pinned, b_pinned, c_pinned;
    size_t chunk; /* lanes a slot has room for */
    int depth;    /* slots a thread */
    struct slot *slots;
    atomic_size_t next; /* the first lane that no thread has taken */
    atomic_uint fp_flags;
    atomic_bool failed; /* *status is taken */
    struct status *status;
};

static pthread_mutex_t transferring = PTHREAD_MUTEX_INITIALIZER;

static size_t
smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t
larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Keeps the first error of all threads, and makes the others stop at their next chunk. Always returns -1. */
static int
fail(struct transfer *job, const struct status *status)
{
    if (!atomic_exchange(&job->failed, true))
        *job->status = *status;
    return -1;
}

static int
cuda_fail(struct transfer *job, cudaError_t error, const char *call)
{
    struct status status;
    device_status(&status, error, call);
    return fail(job, &status);
}

static bool
all_pinned(const struct transfer *job)
{
    return job->a_pinned && job->b_pinned && job->c_pinned;
}

/* Makes what the slot lacks. */
static int
slot_open(struct transfer *job, struct slot *slot, const struct device_scope *scope, struct status *status)
{
    cudaError_t error;
    if (!slot->stream) {
        error = cudaStreamCreateWithFlags(&slot->stream, cudaStreamNonBlocking);
        if (error != cudaSuccess)
            return device_status(status, error, "cudaStreamCreateWithFlags");
    }
    if (!slot->host && !all_pinned(job)) {
        error = cudaHostAlloc(&slot->host, 2 * (size_t)STAGED_MOST, cudaHostAllocPortable);
        if (error != cudaSuccess)
            return device_status(status, error, "cudaHostAlloc");
    }
    return pool_allocate(scope, slot->stream, DEVICE_HEADER + 2 * job->chunk * job->width, &slot->device, status);
}

static int
slot_start(struct transfer *job, struct slot *slot)
{
    slot->count = 0;
    cudaError_t error = cudaMemsetAsync(slot->device, 0, DEVICE_HEADER, slot->stream);
    return error == cudaSuccess ? 0 : cuda_fail(job, error, "cudaMemsetAsync");
}

/* What the observer is told of one step; nothing where there is none. */
static size_t
before(const struct transfer *job, const struct slot *slot, enum transfer_step step, size_t chunk)
{
    const struct transfer_observer *observer = job->options->observer;
    return observer ? observer->before(observer->context, step, (int)(slot - job->slots), slot->stream, chunk) : 0;
}

static void
after(const struct transfer *job, const struct slot *slot, size_t token)
{
    const struct transfer_observer *observer = job->options->observer;
    if (observer)
        observer->after(observer->context, token, slot->stream);
}

static int
slot_copy(struct transfer *job, const struct slot *slot, enum transfer_step step, size_t chunk, void *target,
          const void *source, size_t bytes)
{
    const enum cudaMemcpyKind kind = step == TRANSFER_TO_DEVICE ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    const size_t token = before(job, slot, step, chunk);
    const cudaError_t error = cudaMemcpyAsync(target, source, bytes, kind, slot->stream);
    after(job, slot, token);
    return error == cudaSuccess ? 0 : cuda_fail(job, error, "cudaMemcpyAsync");
}

/* Queues chunk number `chunk`, lanes [begin, begin + count): up, sum, down. */
static int
slot_queue(struct transfer *job, struct slot *slot, size_t chunk, size_t begin, size_t count)
{
    const size_t offset = begin * job->width, bytes = count * job->width;
    unsigned char *device_a = (unsigned char *)slot->device + DEVICE_HEADER;
    unsigned char *device_b = device_a + job->chunk * job->width;
    const unsigned char *a = (const unsigned char *)job->plan->a + offset;
    const unsigned char *b = (const unsigned char *)job->plan->b + offset;
    unsigned char *c = (unsigned char *)job->plan->c + offset;

    /* Ordinary stores: non-temporal ones send the slots out of the cache, 20.8 ms in place of 17.6. */
    if (!job->a_pinned)
        a = memcpy(slot->host, a, bytes);
    if (!job->b_pinned)
        b = memcpy((unsigned char *)slot->host + STAGED_MOST, b, bytes);
    if (!job->c_pinned)
        c = slot->host;

    if (slot_copy(job, slot, TRANSFER_TO_DEVICE, chunk, device_a, a, bytes) < 0 ||
        slot_copy(job, slot, TRANSFER_TO_DEVICE, chunk, device_b, b, bytes) < 0)
        return -1;
    const struct add_call call = {
        .lane = job->plan->lane,
        .a = device_a,
        .b = device_b,
        .c = device_a,
        .n = count,
        .fp_flags = slot->device,
        .stream = slot->stream,
    };
    const size_t token = before(job, slot, TRANSFER_KERNEL, chunk);
    const cudaError_t error = add_launch(&call);
    after(job, slot, token);
    if (error != cudaSuccess)
        return cuda_fail(job, error, "cudaLaunchKernel");
    if (slot_copy(job, slot, TRANSFER_TO_HOST, chunk, c, device_a, bytes) < 0)
        return -1;
    slot->begin = begin;
    slot->count = count;
    return 0;
}

/* Waits for the chunk in flight, if there is one, and hands its sum over. */
static int
slot_drain(struct transfer *job, struct slot *slot)
{
    if (slot->count == 0)
        return 0;
    cudaError_t error = stream_wait(slot->stream);
    if (error != cudaSuccess)
        return cuda_fail(job, error, "cudaStreamSynchronize");
    if (!job->c_pinned)
        memcpy((unsigned char *)job->plan->c + slot->begin * job->width, slot->host, slot->count * job->width);
    slot->count = 0;
    return 0;
}

/* Takes the flags. Nothing of the slot is queued from then on, after an error neither. */
static void
slot_finish(struct transfer *job, struct slot *slot)
{
    unsigned fp_flags = 0;
    cudaError_t error = cudaMemcpyAsync(&fp_flags, slot->device, sizeof fp_flags, cudaMemcpyDeviceToHost, slot->stream);
    if (error != cudaSuccess)
        cuda_fail(job, error, "cudaMemcpyAsync");
    error = stream_wait(slot->stream);
    if (error != cudaSuccess)
        cuda_fail(job, error, "cudaStreamSynchronize");
    atomic_fetch_or(&job->fp_flags, fp_flags);
}

/* One thread queues everything, in turn on two streams: while one stream's sum comes down, the other's operands go up,
 * and a stream's own order lets its slot be used again. */
static void
run_pipeline(struct transfer *job)
{
    const size_t n = job->plan->n, least = PIPELINE_LEAST / job->width, page = PAGE / job->width;
    for (int i = 0; i < job->depth; i++)
        slot_start(job, &job->slots[i]);
    size_t grown = smaller(least, job->chunk);
    for (size_t begin = 0, turn = 0; begin < n && !atomic_load(&job->failed); turn++) {
        const size_t left = n - begin;
        const size_t count = smaller(grown, larger(left / 2 / page * page, smaller(least, left)));
        slot_queue(job, &job->slots[turn % (size_t)job->depth], turn, begin, count);
        begin += count;
        grown = smaller(2 * grown, job->chunk);
    }
    for (int i = 0; i < job->depth; i++)
        slot_finish(job, &job->slots[i]);
}

/* One thread's part of the staged way: it fills one slot while its other one flies, until no chunk is left. */
static void
run_staged(struct transfer *job, struct slot *slots)
{
    struct device_scope scope;
    struct status status;
    if (device_enter(&scope, job->device, &status) < 0) {
        fail(job, &status);
        return;
    }
    for (int i = 0; i < job->depth; i++)
        slot_start(job, &slots[i]);
    for (size_t turn = 0; !atomic_load(&job->failed); turn++) {
        struct slot *slot = &slots[turn % (size_t)job->depth];
        if (slot_drain(job, slot) < 0)
            break;
        const size_t begin = atomic_fetch_add(&job->next, job->chunk);
        if (begin >= job->plan->n)
            break;
        slot_queue(job, slot, begin / job->chunk, begin, smaller(job->chunk, job->plan->n - begin));
    }
    for (int i = 0; i < job->depth && !atomic_load(&job->failed); i++)
        slot_drain(job, &slots[i]);
    for (int i = 0; i < job->depth; i++)
        slot_finish(job, &slots[i]);
    device_leave(&scope);
}

/* threads_body: a block is one set of slots. It ends with them empty, so it matters not which thread runs it. */
static void
run_staged_sets(void *context, size_t begin, size_t end, int worker)
{
    struct transfer *job = context;
    (void)worker;
    for (size_t set = begin; set < end; set++)
        run_staged(job, &job->slots[set * (size_t)job->depth]);
}

static void
ring_free_streams(struct transfer_ring *ring)
{
    for (int i = 0; i < ring->size; i++) {
        if (ring->slots[i].stream)
            cudaStreamDestroy(ring->slots[i].stream);
        ring->slots[i].stream = NULL;
    }
}

/* The ring with at least `size` slots, its streams on `device`; NULL with *status set. */
static struct transfer_ring *
ring_get(int device, int size, struct status *status)
{
    struct transfer_ring *ring = runtime.ring;
    const int old = ring ? ring->size : 0;
    if (old < size) {
        ring = realloc(ring, sizeof *ring + (size_t)size * sizeof *ring->slots);
        if (!ring) {
            status_set(status, STATUS_MEMORY, "there is no memory for a ring of %d slots", size);
            return NULL;
        }
        memset(&ring->slots[old], 0, (size_t)(size - old) * sizeof *ring->slots);
        ring->size = size;
        runtime.ring = ring;
    }
    if (old > 0 && ring->device != device)
        ring_free_streams(ring);
    ring->device = device;
    return ring;
}

static int
is_pinned(const void *memory, size_t bytes, bool *pinned, struct status *status)
{
    const unsigned char *ends[] = {memory, (const unsigned char *)memory + bytes - 1};
    *pinned = true;
    for (int i = 0; i < 2; i++) {
        struct cudaPointerAttributes attributes;
        cudaError_t error = cudaPointerGetAttributes(&attributes, ends[i]);
        if (error != cudaSuccess)
            return device_status(status, error, "cudaPointerGetAttributes");
        *pinned = *pinned && attributes.type == cudaMemoryTypeHost;
    }
    return 0;
}

/* Everything that can be refused is asked for before the first byte of c is written. */
static int
transfer_run(struct transfer *job, const struct device_scope *scope)
{
    const struct plan *plan = job->plan;
    const size_t bytes = plan->n * job->width;
    if (is_pinned(plan->a, bytes, &job->a_pinned, job->status) < 0 ||
        is_pinned(plan->b, bytes, &job->b_pinned, job->status) < 0 ||
        is_pinned(plan->c, bytes, &job->c_pinned, job->status) < 0)
        return -1;
    if (job->options->staged)
        job->a_pinned = job->b_pinned = job->c_pinned = false;

    size_t threads = 1, most = PIPELINE_MOST;
    if (!all_pinned(job)) {
        threads = (size_t)(job->options->threads ? job->options->threads : threads_available());
        most = smaller(larger(bytes / (2 * threads), STAGED_LEAST), STAGED_MOST);
    }
    job->chunk = smaller(most / job->width, plan->n);
    const size_t chunks = (plan->n + job->chunk - 1) / job->chunk;
    threads = smaller(threads, chunks);
    job->depth = (all_pinned(job) ? bytes > PIPELINE_LEAST : chunks > threads) ? 2 : 1;

    const int size = (int)threads * job->depth;
    struct transfer_ring *ring = ring_get(scope->device, size, job->status);
    if (!ring)
        return -1;
    job->slots = ring->slots;

    int result = -1, open = 0;
    for (; open < size; open++)
        if (slot_open(job, &job->slots[open], scope, job->status) < 0)
            goto done;
    if (all_pinned(job))
        run_pipeline(job);
    else
        threads_run((int)threads, threads, 1, run_staged_sets, job);
    if (atomic_load(&job->failed)) {
        const size_t length = strlen(job->status->text);
        snprintf(job->status->text + length, sizeof job->status->text - length, "; the output is undefined");
        goto done;
    }
    result = 0;
done:
    for (int i = 0; i < open; i++)
        pool_release(job->slots[i].stream, job->slots[i].device);
    return result;
}

int
transfer_add(const struct plan *plan, unsigned *fp_flags, struct status *status)
{
    return transfer_add_with(plan, NULL, fp_flags, status);
}

size_t
transfer_most_chunks(size_t bytes)
{
    return bytes / STAGED_LEAST + 1;
}

int
transfer_add_with(const struct plan *plan, const struct transfer_options *options, unsigned *fp_flags,
                  struct status *status)
{
    static const struct transfer_options none = {0};
    *fp_flags = 0;
    if (plan->n == 0)
        return 0;
    struct device_scope scope;
    if (device_enter(&scope, plan->device, status) < 0)
        return -1;
    struct transfer job = {.plan = plan,
                           .options = options ? options : &none,
                           .device = scope.device,
                           .width = lane_size[plan->lane],
                           .status = status};
    pthread_mutex_lock(&transferring);
    int result = transfer_run(&job, &scope);
    pthread_mutex_unlock(&transferring);
    *fp_flags = atomic_load(&job.fp_flags);
    device_leave(&scope);
    return result;
}

void
transfer_release(void)
{
    struct device_scope scope;
    struct status ignored;
    if (!runtime_cuda_usable())
        return;
    pthread_mutex_lock(&transferring);
    struct transfer_ring *ring = runtime.ring;
    if (!ring || device_enter(&scope, ring->device, &ignored) < 0)
        goto done;
    ring_free_streams(ring);
    for (int i = 0; i < ring->size; i++)
        if (ring->slots[i].host)
            cudaFreeHost(ring->slots[i].host);
    free(ring);
    runtime.ring = NULL;
    device_leave(&scope);
done:
    pthread_mutex_unlock(&transferring);
}
