/* Copies and fills. Which of them wait is CUDA's rule for the kinds of memory involved; the double waits for no more
 * than that. */
#include "machine.h"

#include <cstring>

/* One end of a copy. */
struct end {
    char *start;
    size_t bytes;
    block_ptr in; /* null: pageable host memory */

    bool
    on_device() const
    {
        return in && in->on_device();
    }
};

/* False where the range begins in an allocation and ends beyond it. */
static bool
locate(machine &m, const void *address, size_t bytes, end &found)
{
    char *start = static_cast<char *>(const_cast<void *>(address));
    found = {start, bytes, block_at(m, address)};
    return !found.in || bytes <= found.in->bytes - static_cast<size_t>(start - found.in->start);
}

/* When the copy runs: whether this end is still what it was when the copy was queued. */
static bool
still_there(const end &e)
{
    if (!e.in || (e.in->allocated && !e.in->freed))
        return true;
    fault("%p is copied %s", static_cast<void *>(e.start),
          e.in->freed ? "after it was freed" : "before its allocation in stream order");
    return false;
}

static void
open_for(machine &m, const end &e)
{
    if (e.on_device())
        open_memory(m, e.in->device);
}

/* A pool's memory needs an access of the device that copies; plain memory does not. */
static bool
reaches(const end &e, int device)
{
    if (!e.on_device() || !e.in->pool || e.in->device == device || e.in->pool->access >> device & 1)
        return true;
    fault("%p is of a pool of device %d, and device %d copies it without access", static_cast<void *>(e.start),
          e.in->device, device);
    return false;
}

static void
run_copy(machine &m, const end &target, const end &source)
{
    if (m.sticky != cudaSuccess || !still_there(target) || !still_there(source))
        return;
    open_for(m, target);
    open_for(m, source);
    std::memmove(target.start, source.start, target.bytes);
}

static bool
direction_fits(cudaMemcpyKind kind, const end &target, const end &source)
{
    switch (kind) {
    case cudaMemcpyHostToHost:
        return !target.on_device() && !source.on_device();
    case cudaMemcpyHostToDevice:
        return target.on_device() && !source.on_device();
    case cudaMemcpyDeviceToHost:
        return source.on_device(); /* the runtime does not look at the target */
    case cudaMemcpyDeviceToDevice:
        return target.on_device() && source.on_device();
    default:
        return true;
    }
}

/* Queues the copy. A pageable source is read now, after what is queued before it, as the driver's staging does. */
cudaError_t
copy_queue(machine &m, void *target_start, const void *source_start, size_t bytes, const stream_ptr &stream,
           work_ptr *queued)
{
    end target, source;
    if (!locate(m, target_start, bytes, target) || !locate(m, source_start, bytes, source))
        return cudaErrorInvalidValue;
    std::shared_ptr<std::vector<char>> staged;
    if (!source.in) {
        finish(m, stream->tail);
        staged = std::make_shared<std::vector<char>>(source.start, source.start + bytes);
        source.start = staged->data();
    }
    *queued = enqueue(m, stream, [&m, target, source, staged, device = stream->device] {
        if (reaches(target, device) && reaches(source, device))
            run_copy(m, target, source);
    });
    return cudaSuccess;
}

/* Whether a copy has arrived before the call returns. */
enum class waits { asynchronous, blocking };

static cudaError_t
copy(machine &m, void *target_start, const void *source_start, size_t bytes, cudaMemcpyKind kind, cudaStream_t handle,
     waits call)
{
    stream_ptr stream;
    if (static_cast<unsigned>(kind) > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    const cudaError_t unusable = usable_stream(m, handle, stream);
    if (unusable != cudaSuccess)
        return unusable;
    if (bytes == 0)
        return cudaSuccess;
    end target, source;
    if (!target_start || !source_start || !locate(m, target_start, bytes, target) ||
        !locate(m, source_start, bytes, source) || !direction_fits(kind, target, source))
        return cudaErrorInvalidValue;

    work_ptr queued;
    const bool host_side = !target.on_device() || !source.on_device();
    if (stream->capturing && host_side) {
        fault("a copy of host memory in a capture is not in the double yet");
        return cudaSuccess;
    }
    const cudaError_t error = copy_queue(m, target_start, source_start, bytes, stream, &queued);
    if (error != cudaSuccess)
        return error;
    const bool within_device = target.on_device() && source.on_device();
    const bool staged = !source.in && target.on_device();
    const bool to_pageable = !target.in;
    if (to_pageable || (call == waits::blocking && !within_device && !staged))
        finish(m, queued);
    return cudaSuccess;
}

cudaError_t
cudaMemcpy(void *target, const void *source, size_t bytes, cudaMemcpyKind kind)
{
    return cuda_call(
        __func__, [&](machine &m) { return copy(m, target, source, bytes, kind, cudaStreamLegacy, waits::blocking); });
}

cudaError_t
cudaMemcpyAsync(void *target, const void *source, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
    return cuda_call(__func__,
                     [&](machine &m) { return copy(m, target, source, bytes, kind, stream, waits::asynchronous); });
}

/* Between two devices, or within one; needs no peer access. */
cudaError_t
cudaMemcpyPeerAsync(void *target_start, int target_device, const void *source_start, int source_device, size_t bytes,
                    cudaStream_t handle)
{
    return cuda_call(__func__, [&](machine &m) {
        stream_ptr stream;
        const cudaError_t unusable = usable_stream(m, handle, stream);
        if (unusable != cudaSuccess)
            return unusable;
        end target, source;
        if (!locate(m, target_start, bytes, target) || !locate(m, source_start, bytes, source) || !target.on_device() ||
            !source.on_device() || target.in->device != target_device || source.in->device != source_device)
            return cudaErrorInvalidValue;
        enqueue(m, stream, [&m, target, source] {
            run_copy(m, target, source);
            if (m.flipped_copies > 0 && m.flipped_copies--)
                target.start[target.bytes / 2] ^= 4;
        });
        return cudaSuccess;
    });
}

static cudaError_t
fill(machine &m, void *start, int value, size_t bytes, cudaStream_t handle)
{
    stream_ptr stream;
    const cudaError_t unusable = usable_stream(m, handle, stream);
    if (unusable != cudaSuccess)
        return unusable;
    if (bytes == 0)
        return cudaSuccess;
    end target;
    if (!locate(m, start, bytes, target) || !target.in)
        return cudaErrorInvalidValue;
    enqueue(m, stream, [&m, target, value] {
        if (m.sticky != cudaSuccess || !still_there(target))
            return;
        open_for(m, target);
        std::memset(target.start, value, target.bytes);
    });
    return cudaSuccess;
}

cudaError_t
cudaMemset(void *start, int value, size_t bytes)
{
    return cuda_call(__func__, [&](machine &m) { return fill(m, start, value, bytes, cudaStreamLegacy); });
}

cudaError_t
cudaMemsetAsync(void *start, int value, size_t bytes, cudaStream_t stream)
{
    return cuda_call(__func__, [&](machine &m) { return fill(m, start, value, bytes, stream); });
}
