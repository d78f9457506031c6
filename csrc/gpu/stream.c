#include "gpu/stream.h"

#include "base/runtime.h"
#include "gpu/device.h"
#include "gpu/state.h"

/* Waits for the stream, and for the device where that fails. Not where the failure is due to a capture: a wait for the
 * device would fail too, and ends every capture on it in every mode. */
static cudaError_t
wait_for(cudaStream_t stream, bool *done)
{
    const enum cudaStreamCaptureMode before = capture_mode_relax();
    const cudaError_t error = cudaStreamSynchronize(stream);
    *done = error == cudaSuccess;
    if (error != cudaSuccess && !capture_is_why(error))
        *done = cudaDeviceSynchronize() == cudaSuccess;
    device_ignore(error); /* the caller has it as the result */
    capture_mode_restore(before);
    return error;
}

cudaError_t
stream_wait(cudaStream_t stream)
{
    bool done;
    return wait_for(stream, &done);
}

/* The device of a stream; `device` where the stream captures. */
static int
stream_device(int device, cudaStream_t stream, int *found, struct status *status)
{
    enum cudaStreamCaptureStatus capturing;
    if (CUDA_CALL(status, cudaStreamIsCapturing, stream, &capturing) < 0)
        return -1;
    *found = device;
    return capturing == cudaStreamCaptureStatusNone ? CUDA_CALL(status, cudaStreamGetDevice, stream, found) : 0;
}

int
stream_check_device(int device, void *stream, struct status *status)
{
    if (stream == NULL || stream == cudaStreamLegacy || stream == cudaStreamPerThread) /* of the current device */
        return 0;
    int devices, found;
    if (device_count(&devices, status) < 0)
        return -1;
    if (devices == 1)
        return 0;
    struct device_scope scope;
    if (device_enter_to_ask(&scope, device, status) < 0)
        return -1;
    const int result = stream_device(device, stream, &found, status);
    device_leave(&scope);
    if (result < 0 || found == device)
        return result;
    return status_set(status, STATUS_VALUE, "the stream is on cuda:%d and the arrays are on cuda:%d", found, device);
}

static bool
is_legacy(const void *stream)
{
    return stream == NULL || stream == cudaStreamLegacy;
}

static int
captures_here(cudaStream_t stream, bool *captures, struct status *status)
{
    enum cudaStreamCaptureStatus capturing;
    *captures = false;
    if (CUDA_CALL(status, cudaStreamIsCapturing, stream, &capturing) < 0)
        return -1;
    *captures = capturing != cudaStreamCaptureStatusNone;
    return 0;
}

int
stream_captures(int device, void *stream, bool *captures, struct status *status)
{
    struct device_scope scope;
    *captures = false;
    if (is_legacy(stream))
        return 0;
    if (device_enter_to_ask(&scope, device, status) < 0)
        return -1;
    const int result = captures_here(stream, captures, status);
    device_leave(&scope);
    return result;
}

int
stream_any_captures(int device, void *stream, void *const *others, size_t count, bool *captures, struct status *status)
{
    if (stream_captures(device, stream, captures, status) < 0)
        return -1;
    for (size_t i = 0; i < count && !*captures; i++)
        if (stream_captures(device, others[i], captures, status) < 0)
            return -1;
    return 0;
}

/* The first of them that captures; `count` where none does. */
static int
first_that_captures(int device, void *const *streams, size_t count, size_t *first, struct status *status)
{
    for (*first = 0; *first < count; ++*first) {
        bool captures;
        if (stream_captures(device, streams[*first], &captures, status) < 0)
            return -1;
        if (captures)
            break;
    }
    return 0;
}

int
stream_of_memory(int device, void *stream, void *const *others, size_t count, void **found, struct status *status)
{
    size_t first;
    if (first_that_captures(device, others, count, &first, status) < 0)
        return -1;
    *found = first < count ? others[first] : stream;
    return 0;
}

int
stream_lead(int device, void **stream, void **others, size_t count, struct status *status)
{
    bool captures;
    size_t first;
    if (count == 0)
        return 0;
    if (stream_captures(device, *stream, &captures, status) < 0)
        return -1;
    if (captures)
        return 0;
    if (first_that_captures(device, others, count, &first, status) < 0)
        return -1;
    if (first < count) {
        void *const before = *stream;
        *stream = others[first];
        others[first] = before;
    }
    return 0;
}

cudaError_t
stream_own(const struct device_scope *scope, cudaStream_t *own)
{
    struct device_state *const state = scope->state;
    cudaStream_t made, known = atomic_load(&state->home);
    if (!known) {
        struct device_scope primary;
        struct status status = {0};
        if (device_enter_primary(&primary, scope->device, &status) < 0)
            return status.cuda ? (cudaError_t)status.cuda : cudaErrorUnknown;
        const cudaError_t error = cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
        device_leave(&primary);
        if (error != cudaSuccess)
            return error;
        if (atomic_compare_exchange_strong(&state->home, &known, made))
            known = made;
        else
            device_ignore(cudaStreamDestroy(made));
    }
    *own = known;
    return cudaSuccess;
}

bool
stream_is_lasting(int device, const void *stream)
{
    const struct device_state *state = device_state_if_started(device);
    return is_legacy(stream) || (state && stream == atomic_load(&state->home));
}

/* On the current device. */
static int
find_stand_in(cudaStream_t stream, enum stream_stand_in *stand_in, struct status *status)
{
    bool captures;
    unsigned flags = 0;
    if (captures_here(stream, &captures, status) < 0)
        return -1;
    if (!captures && stream != STREAM_PER_THREAD && CUDA_CALL(status, cudaStreamGetFlags, stream, &flags) < 0)
        return -1;
    *stand_in = captures ? STREAM_GRAPH : flags & cudaStreamNonBlocking ? STREAM_NONE : STREAM_LEGACY;
    return 0;
}

int
stream_stand_in(int device, void *stream, enum stream_stand_in *stand_in, struct status *status)
{
    struct device_scope scope;
    if (device_enter(&scope, device, status) < 0)
        return -1;
    const int result = find_stand_in(stream, stand_in, status);
    device_leave(&scope);
    return result;
}

int
stream_home(int device, void *stream, struct kept_stream *kept, bool lasting, struct stream_home *home,
            struct status *status)
{
    struct device_scope scope;
    enum stream_stand_in stand_in = STREAM_GRAPH;
    *home = (struct stream_home){.stream = stream, .allocation = stream, .kept = kept};
    if (kept || lasting || is_legacy(stream))
        return 0;
    if (device_enter(&scope, device, status) < 0)
        return -1;
    int result = find_stand_in(stream, &stand_in, status);
    if (result == 0 && stand_in == STREAM_LEGACY && stream != STREAM_PER_THREAD)
        home->stream = NULL;
    else if (result == 0 && stand_in != STREAM_GRAPH) {
        cudaStream_t own = NULL;
        const cudaError_t error = device_is_in_primary(&scope) ? stream_own(&scope, &own) : cudaSuccess;
        result = cuda_result(status, error, "cudaStreamCreateWithFlags");
        if (result == 0) {
            home->stream = home->allocation = own;
            home->loose = stand_in == STREAM_NONE;
        }
    }
    device_leave(&scope);
    return result;
}

/* Fails where a blocking stream captures: the legacy default stream cannot be used then, and trying ends the
 * capture. */
static int
ask_legacy(cudaStream_t stream, struct status *status)
{
    enum cudaStreamCaptureStatus capturing;
    return is_legacy(stream) ? CUDA_CALL(status, cudaStreamIsCapturing, stream, &capturing) : 0;
}

/* An event for each join, 0.2 us: one that is kept for the next would be dead with the context that it was made in. A
 * queued wait outlives its event. */
static int
join(cudaStream_t before, cudaStream_t after, struct status *status)
{
    cudaEvent_t event;
    if (ask_legacy(before, status) < 0 || ask_legacy(after, status) < 0 ||
        CUDA_CALL(status, cudaEventCreateWithFlags, &event, cudaEventDisableTiming) < 0)
        return -1;
    int result = CUDA_CALL(status, cudaEventRecord, event, before);
    if (result == 0)
        result = CUDA_CALL(status, cudaStreamWaitEvent, after, event, cudaEventWaitDefault);
    device_ignore(cudaEventDestroy(event));
    return result;
}

/* Keeps streams that other threads use too out of a capture: the legacy default stream, because trying to join it ends
 * the capture (measured), and vecadd's own, because its additions would become part of the graph. */
static int
check_not_shared(const struct device_state *state, cudaStream_t before, cudaStream_t after, struct status *status)
{
    bool captures;
    if (is_legacy(before) || !(is_legacy(after) || after == atomic_load(&state->home)))
        return 0;
    if (captures_here(before, &captures, status) < 0)
        return -1;
    return captures ? status_set(status, STATUS_CAPTURE,
                                 "%s cannot wait for a stream that captures; pass stream=, the one that captures",
                                 is_legacy(after) ? "the legacy default stream" : "vecadd's own stream")
                    : 0;
}

int
stream_join(int device, void *before, void *after, struct status *status)
{
    if (before == after)
        return 0;
    struct device_scope scope;
    if (device_enter(&scope, device, status) < 0)
        return -1;
    int result = check_not_shared(scope.state, before, after, status);
    if (result == 0)
        result = join(before, after, status);
    device_leave(&scope);
    return result;
}

static int
wait_on_host(int device, void *stream, struct status *status)
{
    struct device_scope scope;
    if (device_enter(&scope, device, status) < 0)
        return -1;
    int result = ask_legacy(stream, status);
    if (result == 0)
        result = cuda_result(status, stream_wait(stream), "cudaStreamSynchronize");
    device_leave(&scope);
    return result;
}

int
stream_join_consumer(int device, void *home, void *consumer, bool is_new, struct status *status)
{
    bool captures, home_captures;
    if (stream_captures(device, consumer, &captures, status) < 0 ||
        stream_captures(device, home, &home_captures, status) < 0)
        return -1;
    if (!captures || home_captures)
        return stream_join(device, home, consumer, status);
    return is_new ? wait_on_host(device, home, status) : 0;
}

static int
join_others(const struct stream_joins *joins, bool in_capture, bool back, struct status *status)
{
    for (size_t i = 0; i < joins->count; i++) {
        void *const other = joins->others[i];
        bool takes_part = true;
        if (in_capture && stream_captures(joins->device, other, &takes_part, status) < 0)
            return -1;
        if (takes_part &&
            stream_join(joins->device, back ? joins->stream : other, back ? other : joins->stream, status) < 0)
            return -1;
    }
    return 0;
}

int
stream_join_in(const struct stream_joins *joins, bool *in_capture, struct status *status)
{
    *in_capture = false;
    if (joins->count > 0 &&
        stream_any_captures(joins->device, joins->stream, joins->others, joins->count, in_capture, status) < 0)
        return -1;
    return join_others(joins, *in_capture, false, status);
}

int
stream_join_back(const struct stream_joins *joins, bool in_capture, struct status *status)
{
    return join_others(joins, in_capture, true, status);
}

/* Whether a caller that must not become part of a graph may queue work on a stream. */
enum stream_state {
    STREAM_FREE,
    STREAM_BUSY, /* it captures, or it is the legacy default stream and a blocking stream captures */
    STREAM_LOST, /* nothing can be asked of it: its device is lost */
};

static enum stream_state
state_of(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus capturing;
    const cudaError_t error = cudaStreamIsCapturing(stream, &capturing);
    if (error == cudaSuccess)
        return capturing == cudaStreamCaptureStatusNone ? STREAM_FREE : STREAM_BUSY;
    cudaGetLastError();
    return capture_is_why(error) ? STREAM_BUSY : STREAM_LOST;
}

bool
stream_is_busy(int device, void *stream)
{
    struct device_scope scope;
    if (!device_enter_to_release(&scope, device))
        return false;
    const enum stream_state state = state_of(stream);
    device_leave(&scope);
    return state == STREAM_BUSY;
}

bool
stream_join_if_free(int device, void *before, void *after)
{
    struct device_scope scope;
    struct status ignored;
    if (before == after || !device_enter_to_release(&scope, device))
        return true;
    const enum stream_state first = state_of(before), second = state_of(after);
    const bool later = first == STREAM_BUSY || second == STREAM_BUSY;
    if (first == STREAM_FREE && second == STREAM_FREE)
        stream_join(device, before, after, &ignored);
    device_leave(&scope);
    return !later;
}

/* Marks a stream that does not capture. */
static enum stream_marked
mark_free(cudaStream_t stream, void **mark)
{
    cudaEvent_t event;
    bool done;
    cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (error == cudaSuccess) {
        error = cudaEventRecord(event, stream);
        if (error == cudaSuccess) {
            *mark = event;
            return STREAM_MARKED;
        }
        device_ignore(cudaEventDestroy(event));
    }
    error = wait_for(stream, &done);
    cudaGetLastError();
    return done || device_is_lost(error) ? STREAM_DONE : STREAM_UNMARKED;
}

enum stream_marked
stream_mark(int device, void *stream, void **mark)
{
    struct device_scope scope;
    enum cudaStreamCaptureStatus capturing;
    enum stream_marked result = STREAM_UNMARKED;
    *mark = NULL;
    if (!runtime_cuda_usable() || !device_enter_to_release(&scope, device))
        return STREAM_UNMARKED;
    const cudaError_t error = cudaStreamIsCapturing(stream, &capturing);
    if (error != cudaSuccess) {
        cudaGetLastError();
        result = device_is_lost(error) ? STREAM_DONE : STREAM_UNMARKED;
    } else if (capturing != cudaStreamCaptureStatusNone)
        result = STREAM_CAPTURED;
    else
        result = mark_free(stream, mark);
    device_leave(&scope);
    return result;
}

bool
stream_mark_reached(int device, void *mark)
{
    struct device_scope scope;
    struct status status;
    if (!runtime_cuda_usable())
        return false;
    if (device_enter(&scope, device, &status) < 0)
        return status.code == STATUS_DEVICE_LOST;
    const enum cudaStreamCaptureMode before = capture_mode_relax();
    const cudaError_t error = cudaEventQuery(mark);
    capture_mode_restore(before);
    const bool reached = error == cudaSuccess || device_is_lost(error);
    device_ignore(error);
    if (reached)
        device_ignore(cudaEventDestroy(mark));
    device_leave(&scope);
    return reached;
}
