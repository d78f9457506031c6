/* Events: points in a stream that the host and other streams can wait for. */
#include <cuda_runtime_api.h>

#include "../../c/tests.h"
#include "large_memory.h"
#include "made.h"

enum { ROUNDS = 8 };

TEST(an_event_never_recorded_is_done)
{
    cudaEvent_t event = new_event();
    CHECK(cudaEventQuery(event) == cudaSuccess);
    CHECK(cudaEventSynchronize(event) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(NULL, event, 0) == cudaSuccess);
}

TEST(a_wait_is_for_the_record_before_it)
{
    unsigned char *x = device_memory(), *y = device_memory();
    cudaStream_t first = new_stream(cudaStreamNonBlocking), second = new_stream(cudaStreamNonBlocking),
                 after = new_stream(cudaStreamNonBlocking);
    cudaEvent_t event = new_event();
    for (int round = 1; round <= ROUNDS; round++) {
        cudaMemsetAsync(x, round, BYTES, first);
        cudaEventRecord(event, first);
        cudaStreamWaitEvent(after, event, 0);
        cudaEventRecord(event, second); /* nothing is queued there: this record is done at once */
        cudaMemcpyAsync(y, x, BYTES, cudaMemcpyDeviceToDevice, after);
        CHECK(cudaStreamSynchronize(after) == cudaSuccess);
        CHECK(last_byte(y) == round);
    }
}

TEST(a_wait_outlives_its_event)
{
    unsigned char *x = device_memory(), *y = device_memory();
    cudaStream_t before = new_stream(cudaStreamNonBlocking), after = new_stream(cudaStreamNonBlocking);
    for (int round = 1; round <= ROUNDS; round++) {
        cudaEvent_t event = new_event();
        cudaMemsetAsync(x, round, BYTES, before);
        cudaEventRecord(event, before);
        cudaStreamWaitEvent(after, event, 0);
        CHECK(cudaEventDestroy(event) == cudaSuccess);
        cudaMemcpyAsync(y, x, BYTES, cudaMemcpyDeviceToDevice, after);
        CHECK(cudaStreamSynchronize(after) == cudaSuccess);
        CHECK(last_byte(y) == round);
    }
}

TEST(an_event_in_the_legacy_stream_is_after_blocking_streams)
{
    unsigned char *x = device_memory();
    cudaStream_t stream;
    cudaEvent_t event = new_event();
    CHECK(cudaStreamCreate(&stream) == cudaSuccess);
    for (int round = 1; round <= ROUNDS; round++) {
        cudaMemsetAsync(x, round, BYTES, stream);
        CHECK(cudaEventRecord(event, NULL) == cudaSuccess);
        CHECK(cudaEventSynchronize(event) == cudaSuccess);
        CHECK(cudaStreamQuery(stream) == cudaSuccess);
    }
}

TEST(a_query_says_ready_in_the_end)
{
    unsigned char *x = device_memory();
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    cudaEvent_t event = new_event();
    cudaError_t answer;
    for (int round = 1; round <= ROUNDS; round++) {
        cudaMemsetAsync(x, round, BYTES, stream);
        cudaEventRecord(event, stream);
        while ((answer = cudaEventQuery(event)) == cudaErrorNotReady)
            usleep(10);
        CHECK(answer == cudaSuccess);
        CHECK(last_byte(x) == round);
    }
}

TEST(not_ready_is_no_last_error)
{
    unsigned char *x = device_memory();
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    cudaEvent_t event = new_event();
    cudaError_t answer = cudaSuccess;
    for (int round = 1; round <= ROUNDS && answer == cudaSuccess; round++) {
        cudaMemsetAsync(x, round, BYTES, stream);
        answer = cudaStreamQuery(stream);
    }
    CHECK(answer == cudaErrorNotReady);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    answer = cudaSuccess;
    for (int round = 1; round <= ROUNDS && answer == cudaSuccess; round++) {
        cudaMemsetAsync(x, round, BYTES, stream);
        cudaEventRecord(event, stream);
        answer = cudaEventQuery(event);
    }
    CHECK(answer == cudaErrorNotReady);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
}

TEST(time_passes_between_events_of_two_streams)
{
    unsigned char *x = device_memory();
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    cudaEvent_t start, end;
    float milliseconds = -1;
    CHECK(cudaEventCreate(&start) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess);
    CHECK(cudaEventElapsedTime(&milliseconds, start, end) == cudaErrorInvalidResourceHandle);
    CHECK(cudaEventRecord(start, NULL) == cudaSuccess);
    CHECK(cudaEventSynchronize(start) == cudaSuccess);
    cudaMemsetAsync(x, 1, BYTES, stream);
    CHECK(cudaEventRecord(end, stream) == cudaSuccess);
    CHECK(cudaEventSynchronize(end) == cudaSuccess);
    CHECK(cudaEventElapsedTime(&milliseconds, start, end) == cudaSuccess);
    CHECK(milliseconds > 0, "%g", (double)milliseconds);
}

TEST(events_without_timing_have_no_time)
{
    cudaEvent_t start = new_event(), end = new_event();
    float milliseconds;
    cudaEventRecord(start, NULL);
    cudaEventRecord(end, NULL);
    CHECK(cudaEventSynchronize(end) == cudaSuccess);
    CHECK(cudaEventElapsedTime(&milliseconds, start, end) == cudaErrorInvalidResourceHandle);
}

TEST(flags_and_handles_are_checked)
{
    cudaEvent_t event;
    CHECK(cudaEventCreateWithFlags(&event, 0x40) == cudaErrorInvalidValue);
    CHECK(cudaEventRecord(NULL, NULL) == cudaErrorInvalidResourceHandle);
    CHECK(cudaEventQuery(NULL) == cudaErrorInvalidResourceHandle);
    CHECK(cudaEventDestroy(NULL) == cudaErrorInvalidResourceHandle);
}
