#include "transfer/transfer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "base/runtime.h"
#include "base/util.h"
#include "cuda/kernels.h"
#include "gpu/device.h"
#include "gpu/state.h"
#include "host/add.h"
#include "host/threads.h"

/* --- What all transfers share: memory, slots that chunks pass through, and the ring that keeps them. */

/* Bytes of each operand that fit a slot's page-locked memory. 16 threads through slots of 1 MiB take 17.6 ms for 1e8
 * float32, of 512 KiB 19.6, of 4 MiB 26, because the slots no longer stay in the cache. */
enum { SLOT_HOST_BYTES = 1 << 20 };

/* The memory of one chunk in flight through the device, in the order of the slot's stream. */
struct slot {
    cudaStream_t stream;
    void *host;          /* pinned, 2 * SLOT_HOST_BYTES: a's chunk, which the sum overwrites, then b's */
    void *device;        /* the flag word, a's chunk, which the sum overwrites, then b's; only during a transfer */
    size_t begin, count; /* the components in flight; count is 0 when none are */
};

/* The slots and streams kept from transfer to transfer. */
struct transfer_ring {
    int device;      /* whose streams these are; the pinned memory serves every device */
    unsigned *flags; /* pinned: floating-point flags of zero-copy; NULL until needed */
    int size;
    struct slot slots[];
};

/* One operand, as the driver describes it. */
struct transfer_memory {
    bool pinned;
    void *device; /* its address in kernels; NULL where they cannot access it */
};

struct transfer {
    const struct plan *plan;
    const struct transfer_options *options;
    int device;
    size_t width; /* bytes a component */
    struct transfer_memory a, b, c;
    size_t chunk; /* components a slot has room for */
    int depth;    /* slots a thread */
    struct slot *slots;
    atomic_size_t next; /* the first component that no thread has taken */
    atomic_uint fp_flags;
    atomic_bool failed; /* *status is set */
    struct status *status;
};

enum {
    DEVICE_HEADER = 256, /* for the flag word; keeps the operands after it as aligned as the allocation */
    SLOT_BYTES = 2 * SLOT_HOST_BYTES,
};

static bool
all_pinned(const struct transfer *job)
{
    return job->a.pinned && job->b.pinned && job->c.pinned;
}

/* Keeps the first error of all threads, and makes the other threads stop at their next chunk. Always returns -1. */
static int
fail(struct transfer *job, const struct status *status)
{
    if (!atomic_exchange(&job->failed, true))
        *job->status = *status;
    return -1;
}

/* 0 for cudaSuccess, else as fail() does. */
static int
job_result(struct transfer *job, cudaError_t error, const char *call)
{
    struct status status;
    return cuda_result(&status, error, call) < 0 ? fail(job, &status) : 0;
}

#define JOB_CALL(job, function, ...) job_result(job, function(__VA_ARGS__), #function)

/* Whether all of the memory is in one pinned allocation or registration: a copy that leaves one fails, whether into
 * another or into ordinary memory. */
static int
find_pinned(const void *memory, size_t bytes, bool *pinned, struct status *status)
{
    struct known_memory found;
    const uintptr_t at = (uintptr_t)memory;
    if (device_find_memory(at, &found, status) < 0)
        return -1;
    *pinned =
        found.type == CU_MEMORYTYPE_HOST && at - found.begin < found.bytes && bytes <= found.bytes - (at - found.begin);
    return 0;
}

/* Finds its address in kernels, all of it side by side. */
static int
find_memory(const void *memory, size_t bytes, struct transfer_memory *found, struct status *status)
{
    void *first, *last;
    found->device = NULL;
    if (find_pinned(memory, bytes, &found->pinned, status) < 0)
        return -1;
    if (!found->pinned)
        return 0;
    cudaError_t error = cudaHostGetDevicePointer(&first, (void *)memory, 0);
    if (error == cudaSuccess)
        error = cudaHostGetDevicePointer(&last, (unsigned char *)memory + bytes - 1, 0);
    if (error == cudaSuccess && (size_t)((char *)last - (char *)first) == bytes - 1)
        found->device = first;
    device_ignore(error); /* kernels cannot access it */
    return 0;
}

/* Fills in job->a, b and c. */
static int
find_operands(struct transfer *job)
{
    const struct plan *plan = job->plan;
    const size_t bytes = plan->n * job->width;
    if (find_memory(plan->a, bytes, &job->a, job->status) < 0 || find_memory(plan->b, bytes, &job->b, job->status) < 0)
        return -1;
    return find_memory(plan->c, bytes, &job->c, job->status);
}

bool
transfer_memory_pinned(const void *memory, size_t bytes)
{
    struct status ignored;
    bool pinned = false;
    return find_pinned(memory, bytes, &pinned, &ignored) == 0 && pinned;
}

static int
slot_open_stream(struct slot *slot, struct status *status)
{
    cudaStream_t made;
    if (slot->stream)
        return 0;
    if (CUDA_CALL(status, cudaStreamCreateWithFlags, &made, cudaStreamNonBlocking) < 0)
        return -1;
    slot->stream = made;
    return 0;
}

static atomic_size_t ring_bytes, ring_blocks;

struct transfer_counts
transfer_counts(void)
{
    return (struct transfer_counts){atomic_load(&ring_bytes), atomic_load(&ring_blocks)};
}

/* Makes page-locked memory of the ring, which transfer_counts includes until ring_free. */
static int
ring_memory_make(void **memory, size_t bytes, unsigned flags, struct status *status)
{
    void *made = NULL;
    if (CUDA_CALL(status, cudaHostAlloc, &made, bytes, flags) < 0)
        return -1;
    *memory = made;
    atomic_fetch_add(&ring_bytes, bytes);
    atomic_fetch_add(&ring_blocks, 1);
    return 0;
}

/* Frees page-locked memory, unless it is NULL, and returns its bytes. */
static size_t
ring_memory_free(void *memory, size_t bytes)
{
    if (!memory)
        return 0;
    device_ignore(cudaFreeHost(memory));
    atomic_fetch_sub(&ring_bytes, bytes);
    atomic_fetch_sub(&ring_blocks, 1);
    return bytes;
}

/* Makes what the slot lacks. */
static int
slot_open(struct transfer *job, struct slot *slot, const struct device_scope *scope, struct status *status)
{
    if (slot_open_stream(slot, status) < 0)
        return -1;
    if (!slot->host && !all_pinned(job) && ring_memory_make(&slot->host, SLOT_BYTES, cudaHostAllocPortable, status) < 0)
        return -1;
    return pool_allocate(scope, slot->stream, DEVICE_HEADER + 2 * job->chunk * job->width, &slot->device, status);
}

/* Frees what only this transfer needs. Nothing is in flight. */
static void
slot_close(struct slot *slot)
{
    pool_release(slot->stream, slot->device);
    slot->device = NULL;
}

/* Clears the flag word; called before anything else is queued. */
static int
slot_start(struct transfer *job, struct slot *slot)
{
    slot->count = 0;
    return JOB_CALL(job, cudaMemsetAsync, slot->device, 0, DEVICE_HEADER, slot->stream);
}

/* The observer's calls around a step. */
static size_t
slot_before(const struct transfer *job, const struct slot *slot, enum transfer_step step, size_t chunk)
{
    const struct transfer_observer *observer = job->options->observer;
    return observer ? observer->before(observer->context, step, (int)(slot - job->slots), slot->stream, chunk) : 0;
}

static void
slot_after(const struct transfer *job, const struct slot *slot, size_t token)
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
    const size_t token = slot_before(job, slot, step, chunk);
    const cudaError_t error = cudaMemcpyAsync(target, source, bytes, kind, slot->stream);
    slot_after(job, slot, token);
    return job_result(job, error, "cudaMemcpyAsync");
}

/* Queues the kernel for one chunk, call->n components. */
static int
slot_add(struct transfer *job, const struct slot *slot, size_t chunk, struct add_call call)
{
    call.component = job->plan->component;
    call.stream = slot->stream;
    const size_t token = slot_before(job, slot, TRANSFER_KERNEL, chunk);
    const cudaError_t error = add_launch(&call);
    slot_after(job, slot, token);
    return job_result(job, error, "cudaLaunchKernel");
}

/* Queues chunk number `chunk`, components [begin, begin + count): copies up, sum, copy down. */
static int
slot_queue(struct transfer *job, struct slot *slot, size_t chunk, size_t begin, size_t count)
{
    const size_t offset = begin * job->width, bytes = count * job->width;
    unsigned char *device_a = (unsigned char *)slot->device + DEVICE_HEADER;
    unsigned char *device_b = device_a + job->chunk * job->width;
    const unsigned char *a = (const unsigned char *)job->plan->a + offset;
    const unsigned char *b = (const unsigned char *)job->plan->b + offset;
    unsigned char *c = (unsigned char *)job->plan->c + offset;

    /* Ordinary stores: non-temporal ones evict the slots from the cache, 20.8 ms in place of 17.6. */
    if (!job->a.pinned)
        a = memcpy(slot->host, a, bytes);
    if (!job->b.pinned)
        b = memcpy((unsigned char *)slot->host + SLOT_HOST_BYTES, b, bytes);
    if (!job->c.pinned)
        c = slot->host;

    if (slot_copy(job, slot, TRANSFER_TO_DEVICE, chunk, device_a, a, bytes) < 0 ||
        slot_copy(job, slot, TRANSFER_TO_DEVICE, chunk, device_b, b, bytes) < 0 ||
        slot_add(job, slot, chunk,
                 (struct add_call){.a = device_a, .b = device_b, .c = device_a, .n = count, .fp_flags = slot->device}) <
            0 ||
        slot_copy(job, slot, TRANSFER_TO_HOST, chunk, c, device_a, bytes) < 0)
        return -1;
    slot->begin = begin;
    slot->count = count;
    return 0;
}

/* Waits for the chunk in flight, if any, and copies its sum to c where c is not pinned. */
static int
slot_drain(struct transfer *job, struct slot *slot)
{
    if (slot->count == 0)
        return 0;
    if (job_result(job, stream_wait(slot->stream), "cudaStreamSynchronize") < 0)
        return -1;
    if (!job->c.pinned)
        memcpy((unsigned char *)job->plan->c + slot->begin * job->width, slot->host, slot->count * job->width);
    slot->count = 0;
    return 0;
}

/* Reads the flags. Afterwards nothing of the slot is in flight, even after an error. */
static void
slot_finish(struct transfer *job, struct slot *slot)
{
    unsigned fp_flags = 0;
    JOB_CALL(job, cudaMemcpyAsync, &fp_flags, slot->device, sizeof fp_flags, cudaMemcpyDeviceToHost, slot->stream);
    job_result(job, stream_wait(slot->stream), "cudaStreamSynchronize");
    atomic_fetch_or(&job->fp_flags, fp_flags);
}

static void
ring_free_streams(struct transfer_ring *ring)
{
    for (int i = 0; i < ring->size; i++) {
        if (ring->slots[i].stream)
            device_ignore(cudaStreamDestroy(ring->slots[i].stream));
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
        const bool fresh = !ring;
        ring = realloc(ring, sizeof *ring + (size_t)size * sizeof *ring->slots);
        if (!ring) {
            status_set(status, STATUS_MEMORY, "there is no memory for a ring of %d slots", size);
            return NULL;
        }
        if (fresh)
            ring->flags = NULL;
        memset(&ring->slots[old], 0, (size_t)(size - old) * sizeof *ring->slots);
        ring->size = size;
        runtime.ring = ring;
    }
    if (old > 0 && ring->device != device)
        ring_free_streams(ring);
    ring->device = device;
    return ring;
}

/* Frees the ring, from its device, with nothing in flight. Returns the bytes of its page-locked memory. */
static size_t
ring_free(struct transfer_ring *ring)
{
    size_t bytes = ring_memory_free(ring->flags, sizeof *ring->flags);
    ring_free_streams(ring);
    for (int i = 0; i < ring->size; i++)
        bytes += ring_memory_free(ring->slots[i].host, SLOT_BYTES);
    free(ring);
    return bytes;
}

/* --- By copies. */

/* Bytes of one operand's chunk.
 *
 * Pipeline, 1e8 float32 over PCIe 5: chunks that double from 512 KiB to 16 MiB and shrink again at the end take 15.3
 * ms, equal ones of 8 MiB 15.45, of 1 MiB 16.2. Small first and last chunks shorten the time in which only one
 * direction of the link works.
 *
 * Staged: a chunk is at most what fits a slot's page-locked memory. A smaller transfer is cut into two chunks a
 * thread, but not below what the link needs to get going: 64 KiB go at 20 GB/s, 1 MiB at 49. */
enum {
    PIPELINE_MIN = 512 << 10,
    PIPELINE_MAX = 16 << 20,
    STAGED_MIN = 128 << 10,
    PAGE = 4096,
};

/* Bytes of an operand up to which pinned operands go by zero-copy: the times are below. */
enum { ZERO_COPY_MAX = 16 << 20 };

/* One thread queues everything on two streams in turn: while one stream's sum comes down, the other's operands go up.
 * Each stream's own order makes its slot safe to reuse. */
static void
run_pipeline(struct transfer *job)
{
    const size_t n = job->plan->n, least = PIPELINE_MIN / job->width, page = PAGE / job->width;
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

/* One thread's part of a staged transfer: it fills one slot while its other slot is in flight, until no chunk is
 * left. */
static void
run_staged(struct transfer *job, struct slot *slots)
{
    struct device_scope scope;
    struct status status;
    if (device_enter_relaxed(&scope, job->device, &status) < 0) {
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

/* threads_body: a block is one set of slots. It ends with its slots empty, so any thread may run it. */
static void
run_staged_sets(void *context, size_t begin, size_t end, int worker)
{
    struct transfer *job = context;
    (void)worker;
    for (size_t set = begin; set < end; set++)
        run_staged(job, &job->slots[set * (size_t)job->depth]);
}

/* All that can fail beforehand is done before the first byte of c is written. */
static int
run_by_copies(struct transfer *job, const struct device_scope *scope)
{
    const struct plan *plan = job->plan;
    const size_t bytes = plan->n * job->width;
    size_t threads = 1, most = PIPELINE_MAX;
    if (!all_pinned(job)) {
        threads = (size_t)(job->options->threads ? job->options->threads : threads_available());
        most = smaller(larger(bytes / (2 * threads), STAGED_MIN), SLOT_HOST_BYTES);
    }
    job->chunk = smaller(most / job->width, plan->n);
    const size_t chunks = (plan->n + job->chunk - 1) / job->chunk;
    threads = smaller(threads, chunks);
    job->depth = (all_pinned(job) ? bytes > PIPELINE_MIN : chunks > threads) ? 2 : 1;

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
        threads_run_all((int)threads, threads, 1, run_staged_sets, job);
    result = 0;
done:
    for (int i = 0; i < open; i++)
        slot_close(&job->slots[i]);
    return result;
}

/* --- Zero-copy. */

/* No copy at all: one kernel reads and writes page-locked host memory over the link.
 *
 * For small arrays the calls are the time: 1024 float32 take 12.2 us so and 19.3 by copies, 2^18 take 67.6 and 88, 2^20
 * 241 and 259, 2^21 411 and 457, 2^22 750 and 875; at 2^24 the two are even, at 2^26 it is 10.9 ms and 10.4. */

static bool
zero_copy_possible(const struct transfer *job)
{
    return job->a.device && job->b.device && job->c.device;
}

static int
run_by_zero_copy(struct transfer *job, const struct device_scope *scope)
{
    struct transfer_ring *ring = ring_get(scope->device, 1, job->status);
    if (!ring || slot_open_stream(&ring->slots[0], job->status) < 0)
        return -1;
    /* Pinned too, so that clearing and reading it takes no CUDA call. The kernel writes it only to raise a flag. */
    void *flags = ring->flags;
    if (!flags &&
        ring_memory_make(&flags, sizeof *ring->flags, cudaHostAllocPortable | cudaHostAllocMapped, job->status) < 0)
        return -1;
    ring->flags = flags;
    *ring->flags = 0;
    job->slots = ring->slots;
    const struct add_call call = {
        .a = job->a.device, .b = job->b.device, .c = job->c.device, .n = job->plan->n, .fp_flags = ring->flags};
    if (slot_add(job, job->slots, 0, call) == 0) {
        job_result(job, stream_wait(job->slots->stream), "cudaStreamSynchronize");
        atomic_fetch_or(&job->fp_flags, *ring->flags);
    }
    return 0;
}

/* --- The hybrid. */

/* hybrid: the processor adds from the front and the GPU from the back until they meet, so that the shares need not be
 * known beforehand. 1e8 float32 in pinned memory: 7.07 ms, where 16 threads alone take 7.74 and the GPU alone 15.3.
 *
 * It must never be slower than the better of the two alone. One thread drives the GPU and adds while chunks are in
 * flight, so that no thread is lost to the driving. The GPU gets a chunk only if, judging by its last chunks, the sum
 * will be back before the processor could have added all that is left.
 *
 * Ordinary memory is left to the processor: copying a chunk into pinned memory and its sum back takes a thread longer
 * than adding it. 15 threads and one that feeds the GPU took 7.94 ms, 16 that add 7.79. */

/* Bytes of c. Both ends move by whole grains. */
enum {
    GRAIN = 64 << 10,
    GRAINS_A_BLOCK = 4,  /* 256 KiB: the host's own block of streaming stores */
    GRAINS_A_CHUNK = 64, /* 4 MiB go over the link at 53.5 of 55 GB/s */
    MIN_CHUNK = 16,      /* grains; 1 MiB goes at 49 */
    DEPTH = 2,           /* chunks in flight */
};

/* Until the first chunk is back: three operands of 4 MiB at 20 GB/s. */
#define FIRST_GUESS 10e-6 /* seconds a grain */
#define MARGIN      1.2   /* on the last chunk's time: chunks differ by a tenth */

struct hybrid {
    struct transfer *job;
    const struct device_scope *scope;
    host_add_function *add;
    size_t grain; /* components */
    size_t skip;  /* components before c's first in the grid of grains: grains begin on whole pages of c */
    int threads;
    _Atomic uint64_t free; /* grains [front, back) are not taken yet: front in the low half, back in the high one */
    atomic_size_t added;   /* grains that the processor has added */
    double begin;          /* seconds */
};

static size_t
front_of(uint64_t free_grains)
{
    return (size_t)(free_grains & UINT32_MAX);
}

static size_t
back_of(uint64_t free_grains)
{
    return (size_t)(free_grains >> 32);
}

/* Takes at most `most` grains from one end; returns how many, beginning at *begin. */
static size_t
take(struct hybrid *hybrid, bool from_back, size_t most, size_t *begin)
{
    uint64_t before = atomic_load(&hybrid->free), after;
    size_t count;
    do {
        const size_t front = front_of(before), back = back_of(before), left = back - front;
        count = left < most ? left : most;
        *begin = from_back ? back - count : front;
        after = from_back ? (uint64_t)(back - count) << 32 | front : (uint64_t)back << 32 | (front + count);
    } while (count > 0 && !atomic_compare_exchange_weak(&hybrid->free, &before, after));
    return count;
}

/* The components of the grains [begin, begin + count). */
static size_t
components_of(const struct hybrid *hybrid, size_t begin, size_t count, size_t *first)
{
    const size_t n = hybrid->job->plan->n, from = begin * hybrid->grain, to = (begin + count) * hybrid->grain;
    *first = from > hybrid->skip ? from - hybrid->skip : 0;
    const size_t end = to - hybrid->skip < n ? to - hybrid->skip : n;
    return end - *first;
}

/* Adds the next grains from the front; false where none are left. */
static bool
add_some(struct hybrid *hybrid, size_t most)
{
    const struct plan *plan = hybrid->job->plan;
    size_t begin, first;
    const size_t count = atomic_load(&hybrid->job->failed) ? 0 : take(hybrid, false, most, &begin);
    if (count == 0)
        return false;
    const size_t components = components_of(hybrid, begin, count, &first), offset = first * hybrid->job->width;
    hybrid->add((const char *)plan->a + offset, (const char *)plan->b + offset, (char *)plan->c + offset, components);
    atomic_fetch_add(&hybrid->added, count);
    return true;
}

/* How many grains the GPU should take now; 0: none yet. `each` is the seconds that a grain of the last chunk took. */
static size_t
gpu_share(const struct hybrid *hybrid, double each)
{
    const uint64_t free_grains = atomic_load(&hybrid->free);
    const size_t left = back_of(free_grains) - front_of(free_grains), added = atomic_load(&hybrid->added);
    if (added < 2 * GRAINS_A_BLOCK * (size_t)hybrid->threads) /* the threads are still waking up */
        return 0;
    const double host_needs = (double)left * (now_seconds() - hybrid->begin) / (double)added;
    for (size_t count = GRAINS_A_CHUNK; count >= MIN_CHUNK; count /= 2)
        if (count <= left && MARGIN * each * (double)count <= host_needs)
            return count;
    return 0;
}

/* 1 where the slot has nothing in flight, 0 where it has, -1 after an error. */
static int
slot_is_free(struct transfer *job, struct slot *slot)
{
    if (slot->count == 0)
        return 1;
    const cudaError_t error = cudaStreamQuery(slot->stream);
    if (error == cudaErrorNotReady)
        return 0;
    if (error != cudaSuccess)
        return job_result(job, error, "cudaStreamQuery");
    slot->count = 0;
    return 1;
}

/* Opens the slots. Without room on the device the processor adds everything, which is no error. */
static int
open_slots(struct hybrid *hybrid)
{
    struct transfer *job = hybrid->job;
    struct status ignored;
    int open = 0;
    for (; open < DEPTH; open++)
        if (slot_open(job, &job->slots[open], hybrid->scope, &ignored) < 0)
            break;
    if (open < DEPTH)
        while (open > 0)
            slot_close(&job->slots[--open]);
    for (int i = 0; i < open; i++)
        slot_start(job, &job->slots[i]);
    return open;
}

/* Feeds the GPU and adds meanwhile, until nothing is left. Returns how many slots are open. */
static int
feed_and_add(struct hybrid *hybrid)
{
    struct transfer *job = hybrid->job;
    double each = FIRST_GUESS, queued_at[DEPTH] = {0};
    size_t grains[DEPTH] = {0};
    int open = 0;
    bool feeding = true;
    for (size_t turn = 0; !atomic_load(&job->failed);) {
        const size_t share = feeding ? gpu_share(hybrid, each) : 0;
        if (share > 0 && open == 0)
            feeding = (open = open_slots(hybrid)) > 0;
        const size_t at = turn % DEPTH;
        struct slot *slot = &job->slots[at];
        if (share > 0 && open > 0) {
            const bool flew = slot->count > 0;
            const int is_free = slot_is_free(job, slot);
            if (is_free < 0)
                break;
            if (is_free && flew) {
                each = (now_seconds() - queued_at[at]) / (double)grains[at];
                continue; /* try again with the better estimate */
            }
            size_t begin, first;
            if (is_free && (grains[at] = take(hybrid, true, share, &begin)) > 0) {
                const size_t components = components_of(hybrid, begin, grains[at], &first);
                queued_at[at] = now_seconds();
                if (slot_queue(job, slot, turn, first, components) < 0)
                    break;
                turn++;
                continue;
            }
        }
        if (!add_some(hybrid, open ? 1 : GRAINS_A_BLOCK))
            break;
    }
    return open;
}

static void
drive_gpu(struct hybrid *hybrid)
{
    struct transfer *job = hybrid->job;
    struct device_scope scope;
    struct status status;
    if (device_enter_relaxed(&scope, job->device, &status) < 0) {
        fail(job, &status);
        return;
    }
    const int open = feed_and_add(hybrid);
    for (int i = 0; i < open; i++) {
        slot_finish(job, &job->slots[i]);
        slot_close(&job->slots[i]);
    }
    device_leave(&scope);
}

/* threads_body: part 0 drives the GPU, the others only add. */
static void
run_parts(void *context, size_t begin, size_t end, int worker)
{
    (void)worker;
    for (size_t part = begin; part < end; part++) {
        if (part == 0)
            drive_gpu(context);
        while (add_some(context, GRAINS_A_BLOCK))
            ;
    }
}

static int
run_hybrid(struct transfer *job, const struct device_scope *scope)
{
    const struct plan *plan = job->plan;
    const struct host_schedule *schedule = &plan->schedule;
    if (!all_pinned(job)) {
        atomic_store(&job->fp_flags, host_add(schedule, plan->component, plan->a, plan->b, plan->c, plan->n));
        return 0;
    }
    struct transfer_ring *ring = ring_get(scope->device, DEPTH, job->status);
    if (!ring)
        return -1;
    job->slots = ring->slots;

    struct hybrid hybrid = {
        .job = job,
        .scope = scope,
        .add = host_loop(schedule, plan->component, schedule->streaming),
        .grain = GRAIN / job->width,
        .skip = (uintptr_t)plan->c % GRAIN / job->width,
        .threads = schedule->threads,
        .begin = now_seconds(),
    };
    const size_t grains = (plan->n + hybrid.skip + hybrid.grain - 1) / hybrid.grain;
    job->chunk = hybrid.grain * (grains < GRAINS_A_CHUNK ? grains : GRAINS_A_CHUNK);
    atomic_store(&hybrid.free, (uint64_t)grains << 32);
    const unsigned flags = threads_run_all(hybrid.threads, (size_t)hybrid.threads, 1, run_parts, &hybrid);
    atomic_fetch_or(&job->fp_flags, flags);
    return 0;
}

/* --- The calls: one transfer at a time in a process. */

static pthread_mutex_t transferring = PTHREAD_MUTEX_INITIALIZER;

static int
run_transfer(struct transfer *job, const struct device_scope *scope)
{
    const enum transfer_way way = job->options->way;
    if (way == TRANSFER_STAGED)
        job->a.pinned = job->b.pinned = job->c.pinned = false;
    else if (way != TRANSFER_COPIES && zero_copy_possible(job) &&
             (way == TRANSFER_ZERO_COPY || job->plan->n * job->width <= ZERO_COPY_MAX))
        return run_by_zero_copy(job, scope);
    return run_by_copies(job, scope);
}

/* Adds to the message that the output is undefined. */
static int
spoiled(struct status *status)
{
    const size_t length = strlen(status->text);
    snprintf(status->text + length, sizeof status->text - length, "; the output is undefined");
    return TRANSFER_SPOILED;
}

typedef int transfer_body(struct transfer *job, const struct device_scope *scope);

/* Runs `body` on the plan's device, one at a time in a process. */
static int
transfer_by(transfer_body *body, const struct plan *plan, const struct transfer_options *options, unsigned *fp_flags,
            struct status *status)
{
    static const struct transfer_options none = {0};
    *fp_flags = 0;
    struct device_scope scope;
    int device = plan->device;
    if (plan->n == 0)
        return device_find(&device, status);
    if (device_enter_primary(&scope, plan->device, status) < 0)
        return -1;
    struct transfer job = {.plan = plan,
                           .options = options ? options : &none,
                           .device = scope.device,
                           .width = component_size[plan->component],
                           .status = status};
    pthread_mutex_lock(&transferring);
    int result = find_operands(&job) < 0 ? -1 : body(&job, &scope);
    pthread_mutex_unlock(&transferring);
    if (result == 0 && atomic_load(&job.failed))
        result = spoiled(status);
    *fp_flags = atomic_load(&job.fp_flags);
    device_leave(&scope);
    return result;
}

int
transfer_add(const struct plan *plan, const struct transfer_options *options, unsigned *fp_flags, struct status *status)
{
    return transfer_by(run_transfer, plan, options, fp_flags, status);
}

int
hybrid_add(const struct plan *plan, const struct transfer_options *options, unsigned *fp_flags, struct status *status)
{
    return transfer_by(run_hybrid, plan, options, fp_flags, status);
}

size_t
transfer_most_chunks(size_t bytes)
{
    return bytes / STAGED_MIN + 1;
}

/* Takes the ring under the lock and frees it without the lock: freeing page-locked memory waits. */
size_t
transfer_release(void)
{
    struct device_scope scope;
    if (!runtime_cuda_usable() || pthread_mutex_trylock(&transferring) != 0)
        return 0;
    struct transfer_ring *ring = runtime.ring;
    const bool entered = ring && device_enter_to_release(&scope, ring->device);
    if (entered)
        runtime.ring = NULL;
    pthread_mutex_unlock(&transferring);
    if (!entered)
        return 0;
    const enum cudaStreamCaptureMode before = capture_mode_relax();
    const size_t bytes = ring_free(ring);
    capture_mode_restore(before);
    device_leave(&scope);
    return bytes;
}
