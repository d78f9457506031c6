/* Streams: what is ordered with what, and what is refused. A fill of 32 MB ahead of the work that is looked at makes a
 * wrong order likely to show on a GPU; on the double any order that is not promised shows with some seed. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/resource.h>

#include "../../c/tests.h"
#include "large_memory.h"
#include "made.h"

enum { ROUNDS = 8 };

TEST(work_of_one_stream_is_in_order)
{
    unsigned char *x = device_memory(), *y = device_memory();
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    for (int round = 1; round <= ROUNDS; round++) {
        cudaMemsetAsync(x, round, BYTES, stream);
        cudaMemcpyAsync(y, x, BYTES, cudaMemcpyDeviceToDevice, stream);
        cudaMemsetAsync(x, 0, BYTES, stream);
        CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
        CHECK(last_byte(y) == round && last_byte(x) == 0);
    }
}

TEST(the_legacy_stream_and_blocking_streams_wait_for_each_other)
{
    unsigned char *x = device_memory(), *y = device_memory();
    cudaStream_t blocking = new_stream(cudaStreamDefault);
    const struct {
        cudaStream_t first, second;
    } pairs[] = {{blocking, NULL}, {blocking, cudaStreamLegacy}, {NULL, blocking}, {NULL, cudaStreamPerThread}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (int round = 1; round <= ROUNDS; round++) {
            cudaMemsetAsync(x, round, BYTES, pairs[i].first);
            cudaMemcpyAsync(y, x, BYTES, cudaMemcpyDeviceToDevice, pairs[i].second);
            CHECK(cudaStreamSynchronize(pairs[i].second) == cudaSuccess);
            CHECK(last_byte(y) == round, "pair %zu", i);
        }
}

struct filling {
    unsigned char *x, *y;
    int value;
};

static void *
fill_and_copy_on_the_threads_own(void *given)
{
    const struct filling *filling = given;
    cudaMemsetAsync(filling->x, filling->value, BYTES, cudaStreamPerThread);
    cudaMemcpyAsync(filling->y, filling->x, BYTES, cudaMemcpyDeviceToDevice, cudaStreamPerThread);
    return NULL;
}

/* Although the thread has ended. */
TEST(the_legacy_stream_waits_for_other_threads_streams)
{
    unsigned char *x = device_memory(), *y = device_memory(), *z = device_memory();
    for (int round = 1; round <= ROUNDS; round++) {
        struct filling filling = {x, y, round};
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, fill_and_copy_on_the_threads_own, &filling) == 0);
        pthread_join(thread, NULL);
        cudaMemcpyAsync(z, y, BYTES, cudaMemcpyDeviceToDevice, NULL);
        CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
        CHECK(last_byte(z) == round);
    }
}

TEST(a_query_says_ready_in_the_end)
{
    unsigned char *x = device_memory();
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    cudaError_t answer;
    for (int round = 1; round <= ROUNDS; round++) {
        cudaMemsetAsync(x, round, BYTES, stream);
        while ((answer = cudaStreamQuery(stream)) == cudaErrorNotReady)
            usleep(10);
        CHECK(answer == cudaSuccess);
        CHECK(last_byte(x) == round);
    }
}

TEST(the_device_waits_for_every_stream)
{
    unsigned char *x = device_memory();
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    cudaMemsetAsync(x, 7, BYTES, stream);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(cudaStreamQuery(stream) == cudaSuccess);
    CHECK(last_byte(x) == 7);
}

TEST(work_outlives_its_stream)
{
    unsigned char *x = device_memory();
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream) == cudaSuccess);
    cudaMemsetAsync(x, 8, BYTES, stream);
    CHECK(cudaStreamDestroy(stream) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(last_byte(x) == 8);
}

/* Its handle is gone, and only the legacy default stream and the device can still be asked to wait. */
TEST(the_legacy_stream_waits_for_a_blocking_stream_that_is_gone)
{
    unsigned char *x = device_memory(), *y = device_memory();
    for (int round = 1; round <= ROUNDS; round++) {
        cudaStream_t stream;
        CHECK(cudaStreamCreate(&stream) == cudaSuccess);
        cudaMemsetAsync(x, round, BYTES, stream);
        CHECK(cudaStreamDestroy(stream) == cudaSuccess);
        cudaMemcpyAsync(y, x, BYTES, cudaMemcpyDeviceToDevice, NULL);
        CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
        CHECK(last_byte(y) == round);
    }
}

static cudaError_t
ask_whether_it_captures(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus capturing;
    return cudaStreamIsCapturing(stream, &capturing);
}

static cudaError_t
record_on(cudaStream_t stream)
{
    return cudaEventRecord(new_event(), stream);
}

static cudaError_t
free_on(cudaStream_t stream)
{
    void *memory;
    return cudaMallocAsync(&memory, BYTES, NULL) == cudaSuccess ? cudaFreeAsync(memory, stream) : cudaErrorUnknown;
}

static cudaError_t
fill_on(cudaStream_t stream)
{
    unsigned char *memory = device_memory();
    return memory ? cudaMemsetAsync(memory, 1, BYTES, stream) : cudaErrorUnknown;
}

/* Whether a call succeeds on a stream that was destroyed while it had work, in a process of its own. */
static bool
succeeds_on_a_stream_that_is_gone(cudaError_t (*call)(cudaStream_t))
{
    int how = -1;
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit no_core = {0, 0};
        cudaStream_t stream;
        setrlimit(RLIMIT_CORE, &no_core);
        if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
            fill_on(stream) != cudaSuccess || cudaStreamDestroy(stream) != cudaSuccess)
            _exit(2);
        _exit(call(stream) == cudaSuccess ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, &how, 0) == child);
    CHECK(!WIFEXITED(how) || WEXITSTATUS(how) != 2);
    return WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

/* CUDA promises nothing of such a call. Those that were seen (an H100, driver 580) ended the process, as the double's
 * do. */
TEST(no_call_succeeds_on_a_stream_that_is_gone)
{
    CHECK(!succeeds_on_a_stream_that_is_gone(ask_whether_it_captures));
    CHECK(!succeeds_on_a_stream_that_is_gone(record_on));
    CHECK(!succeeds_on_a_stream_that_is_gone(free_on));
    CHECK(!succeeds_on_a_stream_that_is_gone(fill_on));
}

TEST(a_stream_says_what_it_is)
{
    cudaStream_t stream;
    unsigned flags = 99;
    int device = -1;
    enum cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusActive;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    CHECK(cudaStreamGetFlags(stream, &flags) == cudaSuccess && flags == cudaStreamNonBlocking);
    CHECK(cudaStreamGetDevice(stream, &device) == cudaSuccess && device == 0);
    CHECK(cudaStreamIsCapturing(stream, &capturing) == cudaSuccess && capturing == cudaStreamCaptureStatusNone);
    CHECK(cudaStreamDestroy(stream) == cudaSuccess);
    CHECK(cudaStreamCreate(&stream) == cudaSuccess);
    CHECK(cudaStreamGetFlags(stream, &flags) == cudaSuccess && flags == cudaStreamDefault);
}

TEST(flags_and_handles_are_checked)
{
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, 0x40) == cudaErrorInvalidValue);
    CHECK(cudaStreamDestroy(NULL) == cudaErrorInvalidResourceHandle);
}
