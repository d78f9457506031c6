/* Stream-ordered memory: allocated and freed in the order of a stream. */
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <string.h>

#include "../../c/tests.h"
#include "made.h"

enum { BYTES = 8 << 20 };

static uint64_t
attribute(cudaMemPool_t pool, enum cudaMemPoolAttr name)
{
    uint64_t value = UINT64_MAX;
    CHECK(cudaMemPoolGetAttribute(pool, name, &value) == cudaSuccess);
    return value;
}

TEST(memory_is_usable_in_its_stream)
{
    static unsigned char received[BYTES];
    cudaMemPool_t pool = new_pool(0);
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    for (int round = 1; round <= 20; round++) {
        void *memory;
        CHECK(cudaMallocFromPoolAsync(&memory, BYTES, pool, stream) == cudaSuccess);
        CHECK((uintptr_t)memory % 256 == 0);
        CHECK(cudaMemsetAsync(memory, round, BYTES, stream) == cudaSuccess);
        CHECK(cudaMemcpyAsync(received, memory, BYTES, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
        CHECK(cudaFreeAsync(memory, stream) == cudaSuccess);
        CHECK(received[0] == round && received[BYTES - 1] == round);
    }
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
}

TEST(memory_is_usable_in_a_stream_that_waited)
{
    unsigned char received = 0;
    cudaStream_t home = new_stream(cudaStreamNonBlocking), other = new_stream(cudaStreamNonBlocking);
    cudaEvent_t event = new_event();
    void *memory;
    CHECK(cudaMallocAsync(&memory, BYTES, home) == cudaSuccess);
    cudaEventRecord(event, home);
    cudaStreamWaitEvent(other, event, 0);
    CHECK(cudaMemsetAsync(memory, 9, BYTES, other) == cudaSuccess);
    CHECK(cudaMemcpyAsync(&received, memory, 1, cudaMemcpyDeviceToHost, other) == cudaSuccess);
    cudaEventRecord(event, other);
    cudaStreamWaitEvent(home, event, 0);
    CHECK(cudaFreeAsync(memory, home) == cudaSuccess);
    CHECK(cudaStreamSynchronize(home) == cudaSuccess);
    CHECK(received == 9);
}

TEST(a_pool_counts_what_it_gives)
{
    cudaMemPool_t pool = new_pool(0);
    uint64_t threshold = UINT64_MAX;
    void *memory;
    CHECK(attribute(pool, cudaMemPoolAttrReleaseThreshold) == 0);
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold) == cudaSuccess);
    CHECK(attribute(pool, cudaMemPoolAttrReleaseThreshold) == UINT64_MAX);
    CHECK(attribute(pool, cudaMemPoolAttrUsedMemCurrent) == 0);

    CHECK(cudaMallocFromPoolAsync(&memory, BYTES, pool, NULL) == cudaSuccess);
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
    CHECK(attribute(pool, cudaMemPoolAttrUsedMemCurrent) >= BYTES);
    CHECK(attribute(pool, cudaMemPoolAttrReservedMemCurrent) >= BYTES);

    CHECK(cudaFreeAsync(memory, NULL) == cudaSuccess);
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
    CHECK(attribute(pool, cudaMemPoolAttrUsedMemCurrent) == 0);
    CHECK(attribute(pool, cudaMemPoolAttrUsedMemHigh) >= BYTES);
    CHECK(attribute(pool, cudaMemPoolAttrReservedMemCurrent) >= BYTES);
    CHECK(cudaMemPoolTrimTo(pool, 0) == cudaSuccess);
    CHECK(attribute(pool, cudaMemPoolAttrReservedMemCurrent) == 0);
}

TEST(a_pool_without_a_threshold_keeps_nothing)
{
    cudaMemPool_t pool = new_pool(0);
    void *memory;
    CHECK(cudaMallocFromPoolAsync(&memory, BYTES, pool, NULL) == cudaSuccess);
    CHECK(cudaFreeAsync(memory, NULL) == cudaSuccess);
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
    CHECK(attribute(pool, cudaMemPoolAttrReservedMemCurrent) == 0);
    CHECK(cudaMemPoolDestroy(pool) == cudaSuccess);
}

TEST(too_much_is_out_of_memory)
{
    cudaMemPool_t pool = new_pool(0);
    void *memory;
    CHECK(cudaMallocFromPoolAsync(&memory, (size_t)1 << 50, pool, NULL) == cudaErrorMemoryAllocation);
    CHECK(cudaMallocFromPoolAsync(&memory, BYTES, pool, NULL) == cudaSuccess);
    CHECK(cudaFreeAsync(memory, NULL) == cudaSuccess);
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
    CHECK(cudaMemPoolDestroy(pool) == cudaSuccess);
}

TEST(memory_outlives_its_pool)
{
    cudaMemPool_t pool = new_pool(0);
    unsigned char received = 0;
    void *memory;
    CHECK(cudaMallocFromPoolAsync(&memory, BYTES, pool, NULL) == cudaSuccess);
    CHECK(cudaMemPoolDestroy(pool) == cudaSuccess);
    CHECK(cudaMemsetAsync(memory, 5, BYTES, NULL) == cudaSuccess);
    CHECK(cudaMemcpy(&received, memory, 1, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(received == 5);
    CHECK(cudaFreeAsync(memory, NULL) == cudaSuccess);
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
}

TEST(the_blocking_free_takes_it_too)
{
    void *memory;
    CHECK(cudaMallocAsync(&memory, BYTES, NULL) == cudaSuccess);
    CHECK(cudaMemsetAsync(memory, 1, BYTES, NULL) == cudaSuccess);
    CHECK(cudaFree(memory) == cudaSuccess);
}

TEST(the_stream_ordered_free_takes_other_memory_too)
{
    void *memory;
    CHECK(cudaMalloc(&memory, BYTES) == cudaSuccess);
    CHECK(cudaMemsetAsync(memory, 1, BYTES, NULL) == cudaSuccess);
    CHECK(cudaFreeAsync(memory, NULL) == cudaSuccess);
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
}

TEST(what_is_refused)
{
    struct cudaMemPoolProps properties = {
        .allocType = cudaMemAllocationTypePinned,
        .location = {.type = cudaMemLocationTypeDevice, .id = 1000},
    };
    cudaMemPool_t pool;
    void *memory = NULL;
    int host;
    CHECK(cudaMemPoolCreate(&pool, &properties) == cudaErrorInvalidValue);
    CHECK(cudaFreeAsync(&host, NULL) == cudaErrorInvalidValue);
    CHECK(cudaMallocAsync(&memory, BYTES, NULL) == cudaSuccess);
    CHECK(cudaFreeAsync(memory, NULL) == cudaSuccess);
    CHECK(cudaFreeAsync(memory, NULL) == cudaErrorInvalidValue);
}

TEST(nothing)
{
    void *memory = &memory;
    CHECK(cudaMallocAsync(&memory, 0, NULL) == cudaSuccess);
    CHECK(memory == NULL);
    CHECK(cudaFreeAsync(NULL, NULL) == cudaSuccess);
}
