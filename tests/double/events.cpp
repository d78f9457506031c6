#include "machine.h"

static std::shared_ptr<event>
event_of(machine &m, cudaEvent_t handle)
{
    const auto found = m.event_handles.find(reinterpret_cast<uintptr_t>(handle));
    return found == m.event_handles.end() ? nullptr : found->second;
}

static cudaError_t
create(machine &m, cudaEvent_t *handle, unsigned flags)
{
    if (!handle || flags & ~static_cast<unsigned>(cudaEventBlockingSync | cudaEventDisableTiming))
        return cudaErrorInvalidValue;
    *handle = handle_new<cudaEvent_t>(m);
    const auto made = std::make_shared<event>();
    made->context = current_context();
    made->timing = !(flags & cudaEventDisableTiming);
    m.event_handles[reinterpret_cast<uintptr_t>(*handle)] = made;
    return cudaSuccess;
}

cudaError_t
cudaEventCreate(cudaEvent_t *handle)
{
    return cuda_call(__func__, [&](machine &m) { return create(m, handle, cudaEventDefault); });
}

cudaError_t
cudaEventCreateWithFlags(cudaEvent_t *handle, unsigned flags)
{
    return cuda_call(__func__, [&](machine &m) { return create(m, handle, flags); });
}

cudaError_t
cudaEventDestroy(cudaEvent_t handle)
{
    return cuda_call(__func__, [&](machine &m) {
        return m.event_handles.erase(reinterpret_cast<uintptr_t>(handle)) ? cudaSuccess
                                                                          : cudaErrorInvalidResourceHandle;
    });
}

cudaError_t
cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle)
{
    return cuda_call(__func__, [&](machine &m) {
        const auto recorded = event_of(m, handle);
        stream_ptr stream;
        const cudaError_t error = usable_stream(m, stream_handle, stream);
        if (error != cudaSuccess)
            return error;
        if (!recorded || recorded->context != (stream->context ? stream->context : current_context()))
            return cudaErrorInvalidResourceHandle;
        recorded->captured = stream->capturing;
        recorded->captured_after = stream->captured_tail;
        recorded->recorded = stream->capturing ? nullptr : enqueue(m, stream, nullptr);
        return cudaSuccess;
    });
}

cudaError_t
cudaEventQuery(cudaEvent_t handle)
{
    return cuda_call(__func__, [&](machine &m) {
        const auto asked = event_of(m, handle);
        if (!asked)
            return cudaErrorInvalidResourceHandle;
        if (asked->captured)
            return capture_invalidate(*asked->captured, cudaErrorCapturedEvent);
        const cudaError_t error = forbidden_in_capture(m);
        if (error != cudaSuccess)
            return error;
        return finished_by_now(m, asked->recorded) ? cudaSuccess : cudaErrorNotReady;
    });
}

cudaError_t
cudaEventSynchronize(cudaEvent_t handle)
{
    return cuda_call(__func__, [&](machine &m) {
        const auto awaited = event_of(m, handle);
        if (!awaited)
            return cudaErrorInvalidResourceHandle;
        if (awaited->captured)
            return capture_invalidate(*awaited->captured, cudaErrorCapturedEvent);
        const cudaError_t error = forbidden_in_capture(m);
        if (error == cudaSuccess)
            finish(m, awaited->recorded);
        return error;
    });
}

cudaError_t
cudaEventElapsedTime(float *milliseconds, cudaEvent_t start_handle, cudaEvent_t end_handle)
{
    return cuda_call(__func__, [&](machine &m) {
        const auto start = event_of(m, start_handle), end = event_of(m, end_handle);
        if (!start || !end || !start->timing || !end->timing || !start->recorded || !end->recorded)
            return cudaErrorInvalidResourceHandle;
        if (!start->recorded->done || !end->recorded->done)
            return cudaErrorNotReady;
        *milliseconds =
            std::chrono::duration<float, std::milli>(end->recorded->finished - start->recorded->finished).count();
        return cudaSuccess;
    });
}
