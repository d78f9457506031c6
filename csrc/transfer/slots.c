#include "transfer/slots.h"

#include <stdlib.h>
#include <string.h>

#include "base/runtime.h"
#include "cuda/kernels.h"
#include "gpu/device.h"
#include "gpu/state.h"

enum {
    DEVICE_HEADER = 256, /* for the flag word; keeps the operands behind it as aligned as the allocation */
    SLOT_BYTES = 2 * SLOT_HOST_BYTES,
};

bool
transfer_all_pinned(const struct transfer *job)
{
    return job->a.pinned && job->b.pinned && job->c.pinned;
}

int
transfer_fail(struct transfer *job, const struct status *status)
{
    if (!atomic_exchange(&job->failed, true))
        *job->status = *status;
    return -1;
}

int
transfer_cuda_fail(struct transfer *job, cudaError_t error, const char *call)
{
    struct status status;
    device_status(&status, error, call);
    return transfer_fail(job, &status);
}

/* Whether all of the memory lies in one pinned allocation or registration: a copy that leaves one fails, whether into
 * another or into ordinary memory. Asks the driver, because the runtime's cudaPointerGetAttributes makes a context on
 * the current device. */
static int
find_pinned(const void *memory, size_t bytes, bool *pinned, struct status *status)
{
    unsigned type = 0;
    CUdeviceptr begin = 0;
    size_t size = 0;
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                   CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void *values[] = {&type, &begin, &size};
    const uintptr_t at = (uintptr_t)memory;
    device_pointer_attributes *const attributes = device_attributes_of_pointers(status);
    if (!attributes)
        return -1;
    const CUresult error = attributes(3, names, values, at);
    if (error != CUDA_SUCCESS)
        return device_status(status, (int)error, "cuPointerGetAttributes");
    *pinned = type == CU_MEMORYTYPE_HOST && at - begin < size && bytes <= size - (at - begin);
    return 0;
}

/* Its address in kernels, all of it side by side. */
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

int
transfer_find_memory(struct transfer *job)
{
    const struct plan *plan = job->plan;
    const size_t bytes = plan->n * job->width;
    return find_memory(plan->a, bytes, &job->a, job->status) < 0 ||
                   find_memory(plan->b, bytes, &job->b, job->status) < 0 ||
                   find_memory(plan->c, bytes, &job->c, job->status) < 0
               ? -1
               : 0;
}

bool
transfer_memory_pinned(const void *memory, size_t bytes)
{
    struct status ignored;
    bool pinned = false;
    return find_pinned(memory, bytes, &pinned, &ignored) == 0 && pinned;
}

int
slot_open_stream(struct slot *slot, struct status *status)
{
    if (slot->stream)
        return 0;
    cudaError_t error = cudaStreamCreateWithFlags(&slot->stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        return 0;
    slot->stream = NULL;
    return device_status(status, error, "cudaStreamCreateWithFlags");
}

static atomic_size_t ring_bytes, ring_blocks;

struct transfer_counts
transfer_counts(void)
{
    return (struct transfer_counts){atomic_load(&ring_bytes), atomic_load(&ring_blocks)};
}

int
ring_memory_make(void **memory, size_t bytes, unsigned flags, struct status *status)
{
    void *made = NULL;
    const cudaError_t error = cudaHostAlloc(&made, bytes, flags);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaHostAlloc");
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

int
slot_open(struct transfer *job, struct slot *slot, const struct device_scope *scope, struct status *status)
{
    if (slot_open_stream(slot, status) < 0)
        return -1;
    if (!slot->host && !transfer_all_pinned(job) &&
        ring_memory_make(&slot->host, SLOT_BYTES, cudaHostAllocPortable, status) < 0)
        return -1;
    return pool_allocate(scope, slot->stream, DEVICE_HEADER + 2 * job->chunk * job->width, &slot->device, status);
}

void
slot_close(struct slot *slot)
{
    pool_release(slot->stream, slot->device);
    slot->device = NULL;
}

int
slot_start(struct transfer *job, struct slot *slot)
{
    slot->count = 0;
    cudaError_t error = cudaMemsetAsync(slot->device, 0, DEVICE_HEADER, slot->stream);
    return error == cudaSuccess ? 0 : transfer_cuda_fail(job, error, "cudaMemsetAsync");
}

size_t
slot_before(const struct transfer *job, const struct slot *slot, enum transfer_step step, size_t chunk)
{
    const struct transfer_observer *observer = job->options->observer;
    return observer ? observer->before(observer->context, step, (int)(slot - job->slots), slot->stream, chunk) : 0;
}

void
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
    return error == cudaSuccess ? 0 : transfer_cuda_fail(job, error, "cudaMemcpyAsync");
}

int
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
        slot_copy(job, slot, TRANSFER_TO_DEVICE, chunk, device_b, b, bytes) < 0)
        return -1;
    const struct add_call call = {
        .component = job->plan->component,
        .a = device_a,
        .b = device_b,
        .c = device_a,
        .n = count,
        .fp_flags = slot->device,
        .stream = slot->stream,
    };
    const size_t token = slot_before(job, slot, TRANSFER_KERNEL, chunk);
    const cudaError_t error = add_launch(&call);
    slot_after(job, slot, token);
    if (error != cudaSuccess)
        return transfer_cuda_fail(job, error, "cudaLaunchKernel");
    if (slot_copy(job, slot, TRANSFER_TO_HOST, chunk, c, device_a, bytes) < 0)
        return -1;
    slot->begin = begin;
    slot->count = count;
    return 0;
}

int
slot_drain(struct transfer *job, struct slot *slot)
{
    if (slot->count == 0)
        return 0;
    cudaError_t error = stream_wait(slot->stream);
    if (error != cudaSuccess)
        return transfer_cuda_fail(job, error, "cudaStreamSynchronize");
    if (!job->c.pinned)
        memcpy((unsigned char *)job->plan->c + slot->begin * job->width, slot->host, slot->count * job->width);
    slot->count = 0;
    return 0;
}

void
slot_finish(struct transfer *job, struct slot *slot)
{
    unsigned fp_flags = 0;
    cudaError_t error = cudaMemcpyAsync(&fp_flags, slot->device, sizeof fp_flags, cudaMemcpyDeviceToHost, slot->stream);
    if (error != cudaSuccess)
        transfer_cuda_fail(job, error, "cudaMemcpyAsync");
    error = stream_wait(slot->stream);
    if (error != cudaSuccess)
        transfer_cuda_fail(job, error, "cudaStreamSynchronize");
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

struct transfer_ring *
transfer_ring_get(int device, int size, struct status *status)
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

size_t
transfer_ring_free(struct transfer_ring *ring)
{
    size_t bytes = ring_memory_free(ring->flags, sizeof *ring->flags);
    ring_free_streams(ring);
    for (int i = 0; i < ring->size; i++)
        bytes += ring_memory_free(ring->slots[i].host, SLOT_BYTES);
    free(ring);
    return bytes;
}
