#include "machine.h"

#include <algorithm>

static cudaError_t
create(machine &m, cudaStream_t *handle, unsigned flags)
{
    if (!handle || flags & ~static_cast<unsigned>(cudaStreamNonBlocking))
        return cudaErrorInvalidValue;
    *handle = handle_new<cudaStream_t>(m);
    const stream_ptr made = stream_new(m, current_device(), !(flags & cudaStreamNonBlocking));
    made->context = current_context();
    m.stream_handles[reinterpret_cast<uintptr_t>(*handle)] = made;
    return cudaSuccess;
}

cudaError_t
cudaStreamCreate(cudaStream_t *handle)
{
    return cuda_call(__func__, [&](machine &m) { return create(m, handle, cudaStreamDefault); });
}

cudaError_t
cudaStreamCreateWithFlags(cudaStream_t *handle, unsigned flags)
{
    return cuda_call(__func__, [&](machine &m) { return create(m, handle, flags); });
}

/* What is queued stays queued. */
cudaError_t
cudaStreamDestroy(cudaStream_t handle)
{
    return cuda_call(__func__, [&](machine &m) {
        stream_of(m, handle);
        const auto found = m.stream_handles.find(reinterpret_cast<uintptr_t>(handle));
        if (found == m.stream_handles.end()) /* a default stream */
            return cudaErrorInvalidResourceHandle;
        found->second->destroyed = true;
        m.stream_handles.erase(found);
        return cudaSuccess;
    });
}

using stream_rule = cudaError_t(machine &, cudaStream_t, stream_ptr &);

template <typename Body>
static cudaError_t
with_stream(const char *name, stream_rule *rule, cudaStream_t handle, Body body)
{
    return cuda_call(name, [&](machine &m) {
        stream_ptr stream;
        const cudaError_t error = rule(m, handle, stream);
        return error == cudaSuccess ? body(m, stream) : error;
    });
}

cudaError_t
cudaStreamSynchronize(cudaStream_t handle)
{
    return with_stream(__func__, waitable_stream, handle, [](machine &m, const stream_ptr &stream) {
        const cudaError_t error = forbidden_in_capture(m);
        if (error == cudaSuccess)
            finish(m, stream->tail);
        return error;
    });
}

cudaError_t
cudaStreamQuery(cudaStream_t handle)
{
    return with_stream(__func__, waitable_stream, handle, [](machine &m, const stream_ptr &stream) {
        const cudaError_t error = forbidden_in_capture(m);
        if (error != cudaSuccess)
            return error;
        return finished_by_now(m, stream->tail) ? cudaSuccess : cudaErrorNotReady;
    });
}

/* A wait for an event of a capture takes a stream into it, or one that is in it to more of its nodes; the legacy
 * default stream cannot be taken, and the capture ends (measured on an H100). */
static cudaError_t
capture_join(const stream_ptr &stream, const event &captured)
{
    if (stream->legacy)
        return capture_invalidate(*captured.captured, cudaErrorStreamCaptureImplicit);
    if (stream->capturing && stream->capturing != captured.captured) {
        captured.captured->invalid = true;
        return capture_invalidate(*stream->capturing, cudaErrorStreamCaptureMerge);
    }
    if (!stream->capturing)
        stream->captured_tail.clear();
    stream->capturing = captured.captured;
    for (const size_t node : captured.captured_after)
        if (std::find(stream->captured_tail.begin(), stream->captured_tail.end(), node) == stream->captured_tail.end())
            stream->captured_tail.push_back(node);
    return cudaSuccess;
}

cudaError_t
cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned flags)
{
    return with_stream(__func__, usable_stream, handle, [&](machine &m, const stream_ptr &stream) {
        const auto found = m.event_handles.find(reinterpret_cast<uintptr_t>(event));
        if (found == m.event_handles.end())
            return cudaErrorInvalidResourceHandle;
        if (flags != cudaEventWaitDefault)
            return cudaErrorInvalidValue;
        if (found->second->captured)
            return capture_join(stream, *found->second);
        if (stream->capturing)
            return capture_invalidate(*stream->capturing, cudaErrorStreamCaptureIsolation);
        if (found->second->recorded)
            enqueue(m, stream, nullptr, found->second->recorded);
        return cudaSuccess;
    });
}

cudaError_t
cudaStreamGetDevice(cudaStream_t handle, int *device)
{
    return with_stream(__func__, waitable_stream, handle, [&](machine &, const stream_ptr &stream) {
        *device = stream->device;
        return cudaSuccess;
    });
}

cudaError_t
cudaStreamGetFlags(cudaStream_t handle, unsigned *flags)
{
    return with_stream(__func__, waitable_stream, handle, [&](machine &, const stream_ptr &stream) {
        *flags = stream->blocking ? cudaStreamDefault : cudaStreamNonBlocking;
        return cudaSuccess;
    });
}
