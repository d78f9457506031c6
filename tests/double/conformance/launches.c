/* Kernel launches: their order, their limits, and the device they belong to. */
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdlib.h>

#include "../../c/tests.h"
#include "cuda/kernels.h"
#include "lab/base/rung.h"
#include "sanitizer.h"

extern const struct rung rung_naive;

enum { N = 100000, BYTES = N * sizeof(int) };

/* Queues x += y. */
static cudaError_t
queue_add(int *x, const int *y, size_t n, cudaStream_t stream)
{
    const struct add_call call = {.component = COMPONENT_I32, .a = x, .b = y, .c = x, .n = n, .stream = stream};
    return add_launch(&call);
}

static int *
device_memory(int byte)
{
    void *memory = NULL;
    CHECK(cudaMalloc(&memory, BYTES) == cudaSuccess);
    CHECK(cudaMemset(memory, byte, BYTES) == cudaSuccess);
    return memory;
}

TEST(launches_are_in_stream_order)
{
    static int received[N];
    int *x = device_memory(0), *one = device_memory(1);
    CHECK(queue_add(x, one, N, NULL) == cudaSuccess);
    CHECK(queue_add(x, x, N / 2, NULL) == cudaSuccess);
    CHECK(cudaMemset(one, 0, BYTES) == cudaSuccess);
    CHECK(cudaMemcpy(received, x, BYTES, cudaMemcpyDeviceToHost) == cudaSuccess);
    long wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += received[i] != (i < N / 2 ? 2 * 0x01010101 : 0x01010101);
    CHECK(wrong == 0, "%ld", wrong);
}

TEST(kernels_reach_pinned_memory)
{
    int *x = device_memory(1), *pinned;
    CHECK(cudaMallocHost((void **)&pinned, BYTES) == cudaSuccess);
    for (int i = 0; i < N; i++)
        pinned[i] = i;
    CHECK(queue_add(pinned, x, N, NULL) == cudaSuccess);
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
    CHECK(pinned[0] == 0x01010101 && pinned[N - 1] == 0x01010101 + N - 1);
}

TEST(a_block_too_large_is_refused)
{
    int *x = device_memory(0);
    struct rung_call call = {.component = COMPONENT_I32, .a = x, .b = x, .c = x, .n = N, .block = 2048};
    CHECK(rung_naive.launch(&call) == cudaErrorInvalidValue);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue);
    call.block = 1024;
    CHECK(rung_naive.launch(&call) == cudaSuccess);
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
}

/* x += y, described and not queued. */
static struct kernel_launch
describe_add(size_t n)
{
    struct kernel_launch launch = {0};
    const struct add_call call = {.component = COMPONENT_I32, .n = n, .describe = &launch};
    CHECK(add_launch(&call) == cudaSuccess);
    return launch;
}

static int
attribute(enum cudaDeviceAttr which)
{
    int value = 0;
    CHECK(cudaDeviceGetAttribute(&value, which, 0) == cudaSuccess);
    return value;
}

TEST(a_kernel_says_what_it_takes)
{
    const struct kernel_launch launch = describe_add(N);
    struct cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, launch.function) == cudaSuccess);
    CHECK(attributes.numRegs > 0 && attributes.numRegs < 256);
    CHECK(attributes.maxThreadsPerBlock >= 256 && attributes.maxThreadsPerBlock <= 1024);
    CHECK(attributes.sharedSizeBytes == 0 && attributes.localSizeBytes == 0);
    CHECK(cudaFuncGetAttributes(&attributes, NULL) == cudaErrorInvalidDeviceFunction);
    CHECK(cudaGetLastError() == cudaErrorInvalidDeviceFunction);
}

static int
active_blocks(const void *function, int threads, size_t shared)
{
    int blocks = -1;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, threads, shared) == cudaSuccess);
    return blocks;
}

/* By whatever is short first: places for blocks, threads, registers, shared memory. */
TEST(a_multiprocessor_has_as_many_blocks_as_find_room)
{
    const void *function = describe_add(N).function;
    const int most_blocks = attribute(cudaDevAttrMaxBlocksPerMultiprocessor);
    const int most_threads = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
    const int registers = attribute(cudaDevAttrMaxRegistersPerMultiprocessor);
    const size_t shared = (size_t)attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    struct cudaFuncAttributes kernel;
    CHECK(cudaFuncGetAttributes(&kernel, function) == cudaSuccess);

    CHECK(active_blocks(function, 1, 0) == active_blocks(function, 32, 0), "a warp is a warp");
    CHECK(active_blocks(function, 32, 0) <= most_blocks);
    for (int threads = 32; threads <= 1024; threads *= 2) {
        const int blocks = active_blocks(function, threads, 0);
        CHECK(blocks >= 1 && blocks * threads <= most_threads, "%d blocks of %d", blocks, threads);
        CHECK(blocks * threads * kernel.numRegs <= registers, "%d blocks of %d", blocks, threads);
        if (threads * kernel.numRegs * (most_threads / threads) <= registers && most_threads / threads <= most_blocks)
            CHECK(blocks == most_threads / threads, "%d blocks of %d", blocks, threads);
    }
    const size_t reserved = (size_t)attribute(cudaDevAttrReservedSharedMemoryPerBlock);
    CHECK(active_blocks(function, 32, 48 << 10) == (int)(shared / ((48 << 10) + reserved)));
}

/* Needs two devices; with one there is nothing to check. */
static bool
another_device(void)
{
    int count = 0;
    CHECK(cudaGetDeviceCount(&count) == cudaSuccess);
    return count > 1;
}

TEST(an_event_is_recorded_on_its_own_device)
{
    cudaStream_t stream;
    cudaEvent_t event;
    if (!another_device())
        return;
    CHECK(cudaSetDevice(1) == cudaSuccess && cudaStreamCreate(&stream) == cudaSuccess);
    CHECK(cudaSetDevice(0) == cudaSuccess && cudaEventCreate(&event) == cudaSuccess);
    CHECK(cudaEventRecord(event, stream) == cudaErrorInvalidResourceHandle);
    CHECK(cudaEventRecord(event, NULL) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(stream, event, 0) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
}

/* No error where it is launched, and the device is lost: who takes a stream from others has to check it. */
/* From here on tests provoke illegal addresses. A sanitizer would report each one, and keeps some of them from the
 * device. */
TEST(a_kernel_runs_on_its_streams_device)
{
    cudaStream_t stream;
    if (under_sanitizer() || !another_device())
        return;
    int *x = device_memory(0);
    CHECK(cudaSetDevice(1) == cudaSuccess && cudaStreamCreate(&stream) == cudaSuccess);
    CHECK(cudaSetDevice(0) == cudaSuccess);
    CHECK(queue_add(x, x, N, stream) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) != cudaSuccess);
}

TEST(memory_freed_is_an_illegal_address)
{
    int *x = NULL;
    if (under_sanitizer())
        return;
    CHECK(cudaMalloc((void **)&x, 256 << 20) == cudaSuccess);
    CHECK(cudaFree(x) == cudaSuccess);
    CHECK(queue_add(x, x, 32, NULL) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    /* ... and stays with every later call. */
    CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    CHECK(cudaMalloc((void **)&x, 16) == cudaErrorIllegalAddress);
    CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
}

TEST(ordinary_memory_is_an_illegal_address)
{
    int *host = calloc(N, sizeof *host), capable = 0;
    if (under_sanitizer())
        return;
    CHECK(cudaDeviceGetAttribute(&capable, cudaDevAttrPageableMemoryAccess, 0) == cudaSuccess);
    if (!capable) {
        CHECK(queue_add(host, host, N, NULL) == cudaSuccess);
        CHECK(cudaStreamSynchronize(NULL) == cudaErrorIllegalAddress);
    }
    free(host);
}
