#include "stream.h"

#include "device.h"
#include "device_state.h"

cudaError_t
stream_wait(cudaStream_t stream)
{
    cudaError_t error = cudaStreamSynchronize(stream);
    if (error != cudaSuccess)
        cudaDeviceSynchronize();
    return error;
}

int
stream_check_device(int device, void *stream, struct status *status)
{
    if (stream == NULL || stream == cudaStreamLegacy || stream == cudaStreamPerThread) /* the current device's */
        return 0;
    int devices, found;
    if (device_count(&devices, status) < 0)
        return -1;
    if (devices == 1)
        return 0;
    enum cudaStreamCaptureStatus capturing;
    cudaError_t error = cudaStreamIsCapturing(stream, &capturing);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaStreamIsCapturing");
    if (capturing != cudaStreamCaptureStatusNone)
        return 0;
    error = cudaStreamGetDevice(stream, &found);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaStreamGetDevice");
    if (found == device)
        return 0;
    return status_set(status, STATUS_VALUE, "the stream is on cuda:%d and the arrays are on cuda:%d", found, device);
}

int
stream_join(int device, void *before, void *after, struct status *status)
{
    if (before == after)
        return 0;
    struct device_scope scope;
    if (device_enter(&scope, device, status) < 0)
        return -1;

    /* A wait takes the event as it was last recorded, so one event serves every join as long as no other thread records
     * it in between: 0.4 us under the lock, where an event a call costs 0.2 us more. */
    pthread_mutex_lock(&scope.state->lock);
    const char *call = "cudaEventRecord";
    cudaError_t error = cudaEventRecord(scope.state->join, before);
    if (error == cudaSuccess) {
        call = "cudaStreamWaitEvent";
        error = cudaStreamWaitEvent(after, scope.state->join, cudaEventWaitDefault);
    }
    pthread_mutex_unlock(&scope.state->lock);

    if (error != cudaSuccess)
        device_status(status, error, call);
    device_leave(&scope);
    return error == cudaSuccess ? 0 : -1;
}
