#include "machine.h"

#include <algorithm>

static cudaError_t
create(machine &m, cudaStream_t *handle, unsigned flags)
{
    if (!handle || flags & ~static_cast<unsigned>(cudaStreamNonBlocking))
        return cudaErrorInvalidValue;
    *handle = handle_new<cudaStream_t>(m);
    m.stream_handles[reinterpret_cast<uintptr_t>(*handle)] =
        stream_new(m, current_device(), !(flags & cudaStreamNonBlocking));
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
        const auto found = m.stream_handles.find(reinterpret_cast<uintptr_t>(handle));
        if (found == m.stream_handles.end())
            return cudaErrorInvalidResourceHandle;
        found->second->destroyed = true;
        m.stream_handles.erase(found);
        return cudaSuccess;
    });
}

template <typename Body>
static cudaError_t
with_stream(const char *name, cudaStream_t handle, Body body)
{
    return cuda_call(name, [&](machine &m) {
        const stream_ptr stream = stream_of(m, handle);
        return stream ? body(m, stream) : cudaErrorInvalidResourceHandle;
    });
}

cudaError_t
cudaStreamSynchronize(cudaStream_t handle)
{
    return with_stream(__func__, handle, [](machine &m, const stream_ptr &stream) {
        finish(m, stream->tail);
        return cudaSuccess;
    });
}

cudaError_t
cudaStreamQuery(cudaStream_t handle)
{
    return with_stream(__func__, handle, [](machine &m, const stream_ptr &stream) {
        return finished_by_now(m, stream->tail) ? cudaSuccess : cudaErrorNotReady;
    });
}

cudaError_t
cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned flags)
{
    return with_stream(__func__, handle, [&](machine &m, const stream_ptr &stream) {
        const auto found = m.event_handles.find(reinterpret_cast<uintptr_t>(event));
        if (found == m.event_handles.end())
            return cudaErrorInvalidResourceHandle;
        if (flags != cudaEventWaitDefault)
            return cudaErrorInvalidValue;
        if (found->second->recorded)
            enqueue(m, stream, nullptr, found->second->recorded);
        return cudaSuccess;
    });
}

cudaError_t
cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus *status)
{
    return with_stream(__func__, handle, [&](machine &, const stream_ptr &) {
        *status = cudaStreamCaptureStatusNone;
        return cudaSuccess;
    });
}

cudaError_t
cudaStreamGetDevice(cudaStream_t handle, int *device)
{
    return with_stream(__func__, handle, [&](machine &, const stream_ptr &stream) {
        *device = stream->device;
        return cudaSuccess;
    });
}

cudaError_t
cudaStreamGetFlags(cudaStream_t handle, unsigned *flags)
{
    return with_stream(__func__, handle, [&](machine &, const stream_ptr &stream) {
        *flags = stream->blocking ? cudaStreamDefault : cudaStreamNonBlocking;
        return cudaSuccess;
    });
}
