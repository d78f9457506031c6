/* Streams that capture, and the graphs that come of it: what is captured and when it runs, what ends a capture, and how
 * launches are ordered. */
#include <cuda_runtime_api.h>
#include <pthread.h>

#include "../../c/tests.h"
#include "cuda/kernels.h"
#include "made.h"

enum { N = 10000, BYTES = N * sizeof(int), LAUNCHES = 5, ROUNDS = 8 };

/* Every byte of it has that value. */
static int *
device_memory(int byte)
{
    void *memory = NULL;
    CHECK(add_load() == cudaSuccess); /* a kernel is not to be loaded in a capture */
    CHECK(cudaMalloc(&memory, BYTES) == cudaSuccess);
    CHECK(cudaMemset(memory, byte, BYTES) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    return memory;
}

/* Queues x += y. */
static cudaError_t
queue_add(int *x, const int *y, cudaStream_t stream)
{
    const struct add_call call = {.component = COMPONENT_I32, .a = x, .b = y, .c = x, .n = N, .stream = stream};
    return add_launch(&call);
}

static int
last_of(const int *device)
{
    int value = 0;
    CHECK(cudaMemcpy(&value, device + N - 1, sizeof value, cudaMemcpyDeviceToHost) == cudaSuccess);
    return value;
}

static void
begin(cudaStream_t stream)
{
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
}

static cudaGraphExec_t
end(cudaStream_t stream)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
    CHECK(cudaGraphDestroy(graph) == cudaSuccess); /* what was made of it goes on */
    return exec;
}

static enum cudaStreamCaptureStatus
capture_status(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    CHECK(cudaStreamIsCapturing(stream, &status) == cudaSuccess);
    return status;
}

/* The capture is broken: nothing comes of it, and the stream is as it was before. */
static void
check_invalidated(cudaStream_t stream)
{
    cudaGraph_t graph = (cudaGraph_t)stream;
    CHECK(capture_status(stream) == cudaStreamCaptureStatusInvalidated);
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
    CHECK(graph == NULL);
    cudaGetLastError();
    CHECK(capture_status(stream) == cudaStreamCaptureStatusNone);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
}

TEST(what_is_captured_runs_when_its_graph_is_launched)
{
    int *x = device_memory(0), *one = device_memory(1);
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    CHECK(capture_status(stream) == cudaStreamCaptureStatusNone);
    begin(stream);
    CHECK(capture_status(stream) == cudaStreamCaptureStatusActive);
    CHECK(queue_add(x, one, stream) == cudaSuccess);
    CHECK(queue_add(x, x, stream) == cudaSuccess);
    cudaGraphExec_t exec = end(stream);
    CHECK(capture_status(stream) == cudaStreamCaptureStatusNone);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(last_of(x) == 0);
    CHECK(cudaGraphUpload(exec, stream) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(last_of(x) == 0);
    int want = 0;
    for (int i = 0; i < LAUNCHES; i++) {
        CHECK(cudaGraphLaunch(exec, stream) == cudaSuccess);
        want = 2 * (want + 0x01010101);
    }
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(last_of(x) == want, "%#x", (unsigned)last_of(x));
}

TEST(a_launch_is_in_stream_order)
{
    int *x = device_memory(0), *one = device_memory(1);
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    begin(stream);
    CHECK(queue_add(x, one, stream) == cudaSuccess);
    cudaGraphExec_t exec = end(stream);
    for (int round = 0; round < ROUNDS; round++) {
        CHECK(cudaMemsetAsync(x, 2, BYTES, stream) == cudaSuccess);
        CHECK(cudaGraphLaunch(exec, stream) == cudaSuccess);
        CHECK(queue_add(x, x, stream) == cudaSuccess);
        CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
        CHECK(last_of(x) == 0x06060606);
    }
}

TEST(a_launch_outlives_its_graph)
{
    int *x = device_memory(0), *one = device_memory(1);
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    begin(stream);
    CHECK(queue_add(x, one, stream) == cudaSuccess);
    cudaGraphExec_t exec = end(stream);
    CHECK(cudaGraphLaunch(exec, stream) == cudaSuccess);
    CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(last_of(x) == 0x01010101);
}

TEST(launches_of_one_graph_are_in_order_on_any_streams)
{
    int *x = device_memory(0), *one = device_memory(1);
    cudaStream_t streams[] = {new_stream(cudaStreamNonBlocking), new_stream(cudaStreamNonBlocking)};
    begin(streams[0]);
    CHECK(queue_add(x, one, streams[0]) == cudaSuccess);
    CHECK(queue_add(x, x, streams[0]) == cudaSuccess);
    cudaGraphExec_t exec = end(streams[0]);
    for (int i = 0; i < 4; i++)
        CHECK(cudaGraphLaunch(exec, streams[i % 2]) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(last_of(x) == 30 * 0x01010101);
}

TEST(memory_of_a_capture_is_there_in_every_launch)
{
    int *x = device_memory(0);
    void *memory = NULL;
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    begin(stream);
    CHECK(cudaMallocAsync(&memory, BYTES, stream) == cudaSuccess);
    CHECK(cudaMemsetAsync(memory, 1, BYTES, stream) == cudaSuccess);
    CHECK(queue_add(x, memory, stream) == cudaSuccess);
    CHECK(cudaFreeAsync(memory, stream) == cudaSuccess);
    cudaGraphExec_t exec = end(stream);
    for (int i = 0; i < LAUNCHES; i++)
        CHECK(cudaGraphLaunch(exec, stream) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(last_of(x) == LAUNCHES * 0x01010101, "%#x", (unsigned)last_of(x));
}

TEST(a_graph_of_nothing_can_be_launched)
{
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    begin(stream);
    cudaGraphExec_t exec = end(stream);
    CHECK(cudaGraphUpload(exec, stream) == cudaSuccess);
    CHECK(cudaGraphLaunch(exec, stream) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
}

TEST(events_take_other_streams_into_a_capture_and_back)
{
    int *x = device_memory(0), *y = device_memory(0), *one = device_memory(1);
    cudaStream_t stream = new_stream(cudaStreamNonBlocking), side = new_stream(cudaStreamNonBlocking);
    cudaEvent_t fork = new_event(), join = new_event();
    begin(stream);
    CHECK(queue_add(x, one, stream) == cudaSuccess);
    CHECK(cudaEventRecord(fork, stream) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(side, fork, 0) == cudaSuccess);
    CHECK(capture_status(side) == cudaStreamCaptureStatusActive);
    CHECK(queue_add(y, x, side) == cudaSuccess);
    CHECK(cudaEventRecord(join, side) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(stream, join, 0) == cudaSuccess);
    CHECK(queue_add(x, y, stream) == cudaSuccess);
    cudaGraphExec_t exec = end(stream);
    CHECK(capture_status(side) == cudaStreamCaptureStatusNone);
    CHECK(cudaGraphLaunch(exec, stream) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(last_of(x) == 0x02020202 && last_of(y) == 0x01010101);
}

TEST(a_stream_that_does_not_come_back_is_an_error)
{
    int *x = device_memory(0);
    cudaStream_t stream = new_stream(cudaStreamNonBlocking), side = new_stream(cudaStreamNonBlocking);
    cudaEvent_t fork = new_event();
    cudaGraph_t graph = NULL;
    begin(stream);
    CHECK(cudaEventRecord(fork, stream) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(side, fork, 0) == cudaSuccess);
    CHECK(queue_add(x, x, side) == cudaSuccess);
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureUnjoined);
    CHECK(graph == NULL);
    CHECK(capture_status(stream) == cudaStreamCaptureStatusNone);
    CHECK(capture_status(side) == cudaStreamCaptureStatusNone);
}

TEST(the_legacy_stream_captures_nothing)
{
    CHECK(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeThreadLocal) == cudaErrorStreamCaptureUnsupported);
    CHECK(cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeRelaxed) == cudaErrorStreamCaptureUnsupported);
}

TEST(a_capture_that_was_not_begun_cannot_be_ended)
{
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    cudaGraph_t graph = NULL;
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorIllegalState);
    begin(stream);
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaErrorIllegalState);
    cudaStreamEndCapture(stream, &graph);
}

TEST(a_capturing_stream_cannot_be_waited_for)
{
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    begin(stream);
    CHECK(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
    check_invalidated(stream);
    begin(stream);
    CHECK(cudaStreamQuery(stream) == cudaErrorStreamCaptureUnsupported);
    check_invalidated(stream);
    begin(stream);
    CHECK(cudaDeviceSynchronize() == cudaErrorStreamCaptureUnsupported);
    check_invalidated(stream);
}

TEST(nothing_goes_into_a_capture_that_is_broken)
{
    int *x = device_memory(0);
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    begin(stream);
    CHECK(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
    CHECK(queue_add(x, x, stream) == cudaErrorStreamCaptureInvalidated);
    CHECK(cudaMemsetAsync(x, 0, BYTES, stream) == cudaErrorStreamCaptureInvalidated);
    check_invalidated(stream);
}

TEST(events_of_a_capture_cannot_be_waited_for_outside)
{
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    cudaEvent_t inside = new_event();
    begin(stream);
    CHECK(cudaEventRecord(inside, stream) == cudaSuccess);
    CHECK(cudaEventQuery(inside) == cudaErrorCapturedEvent);
    check_invalidated(stream);
}

TEST(a_capture_cannot_wait_for_what_is_outside)
{
    int *x = device_memory(0);
    cudaStream_t stream = new_stream(cudaStreamNonBlocking), other = new_stream(cudaStreamNonBlocking);
    cudaEvent_t outside = new_event();
    CHECK(queue_add(x, x, other) == cudaSuccess);
    CHECK(cudaEventRecord(outside, other) == cudaSuccess);
    begin(stream);
    CHECK(cudaStreamWaitEvent(stream, outside, 0) == cudaErrorStreamCaptureIsolation);
    check_invalidated(stream);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

TEST(the_legacy_stream_is_not_to_be_used_while_a_blocking_stream_captures)
{
    int *x = device_memory(0);
    cudaStream_t blocking = new_stream(cudaStreamDefault), apart = new_stream(cudaStreamNonBlocking);
    begin(blocking);
    CHECK(queue_add(x, x, NULL) == cudaErrorStreamCaptureImplicit);
    check_invalidated(blocking);
    begin(apart);
    CHECK(queue_add(x, x, NULL) == cudaSuccess);
    CHECK(capture_status(apart) == cudaStreamCaptureStatusActive);
    CHECK(cudaGraphExecDestroy(end(apart)) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

TEST(the_legacy_stream_is_not_led_into_a_capture)
{
    for (unsigned flags = 0; flags < 2; flags++) {
        cudaStream_t stream = new_stream(flags ? cudaStreamNonBlocking : cudaStreamDefault);
        cudaEvent_t captured = new_event();
        begin(stream);
        CHECK(cudaEventRecord(captured, stream) == cudaSuccess);
        CHECK(cudaStreamWaitEvent(NULL, captured, 0) == cudaErrorStreamCaptureImplicit);
        check_invalidated(stream);
        CHECK(cudaDeviceSynchronize() == cudaSuccess);
        cudaEventDestroy(captured);
        cudaStreamDestroy(stream);
    }
}

static void *
use_own_stream(void *given)
{
    int *x = given;
    CHECK(capture_status(cudaStreamPerThread) == cudaStreamCaptureStatusNone);
    CHECK(queue_add(x, x, cudaStreamPerThread) == cudaSuccess);
    return NULL;
}

/* While one thread's is captured, another thread's runs what it is given; and it is a blocking one. */
TEST(the_per_thread_stream_is_another_one_in_each_thread)
{
    int *x = device_memory(1);
    pthread_t thread;
    begin(cudaStreamPerThread);
    CHECK(pthread_create(&thread, NULL, use_own_stream, x) == 0);
    pthread_join(thread, NULL);
    CHECK(capture_status(cudaStreamPerThread) == cudaStreamCaptureStatusActive);
    CHECK(queue_add(x, x, cudaStreamPerThread) == cudaSuccess);
    CHECK(cudaGraphExecDestroy(end(cudaStreamPerThread)) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(last_of(x) == 0x02020202);
    begin(cudaStreamPerThread);
    CHECK(queue_add(x, x, NULL) == cudaErrorStreamCaptureImplicit);
    check_invalidated(cudaStreamPerThread);
}

static void *
allocate_elsewhere(void *result)
{
    void *memory = NULL;
    *(cudaError_t *)result = cudaMalloc(&memory, 1 << 20);
    cudaGetLastError();
    return NULL;
}

static cudaError_t
allocation_of_another_thread(void)
{
    pthread_t thread;
    cudaError_t result = cudaErrorUnknown;
    CHECK(pthread_create(&thread, NULL, allocate_elsewhere, &result) == 0);
    pthread_join(thread, NULL);
    return result;
}

TEST(the_mode_says_whose_calls_may_break_a_capture)
{
    void *memory = NULL;
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    begin(stream);
    CHECK(allocation_of_another_thread() == cudaSuccess);
    CHECK(capture_status(stream) == cudaStreamCaptureStatusActive);
    CHECK(cudaMalloc(&memory, 1 << 20) == cudaErrorStreamCaptureUnsupported);
    check_invalidated(stream);

    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
    CHECK(allocation_of_another_thread() == cudaErrorStreamCaptureUnsupported);
    check_invalidated(stream);

    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
    CHECK(cudaMalloc(&memory, 1 << 20) == cudaSuccess);
    CHECK(capture_status(stream) == cudaStreamCaptureStatusActive);
    CHECK(cudaGraphExecDestroy(end(stream)) == cudaSuccess);
}

struct ending {
    cudaStream_t stream;
    cudaError_t result;
};

static void *
end_elsewhere(void *given)
{
    struct ending *ending = given;
    cudaGraph_t graph = NULL;
    ending->result = cudaStreamEndCapture(ending->stream, &graph);
    return NULL;
}

TEST(a_capture_is_ended_by_the_thread_that_began_it)
{
    pthread_t thread;
    struct ending ending = {new_stream(cudaStreamNonBlocking), cudaSuccess};
    begin(ending.stream);
    CHECK(pthread_create(&thread, NULL, end_elsewhere, &ending) == 0);
    pthread_join(thread, NULL);
    CHECK(ending.result == cudaErrorStreamCaptureWrongThread, "%d", ending.result);
}
