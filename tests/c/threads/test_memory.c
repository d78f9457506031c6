/* memory.h on the CUDA-runtime double: what is kept, what is given back, and what happens where there is no room. */
#include "gpu/memory.h"

#include <cuda_runtime_api.h>
#include <pthread.h>

#include "device_memory.h"
#include "double.h"
#include "failures.h"
#include "gpu/device.h"
#include "sums.h"
#include "tests.h"

static bool
counts_are(size_t device_bytes, size_t device_blocks, size_t pinned_bytes, size_t pinned_blocks)
{
    const struct memory_counts counts = memory_counts();
    return counts.device_bytes == device_bytes && counts.device_blocks == device_blocks &&
           counts.pinned_bytes == pinned_bytes && counts.pinned_blocks == pinned_blocks;
}

/* A device of 1 MiB, three quarters of which were released on the stream and not yet waited for. */
TEST(what_was_released_is_waited_for_before_an_allocation_fails)
{
    enum { BYTES = 768 << 10 };
    struct status status;
    void *memory, *stream = double_stream_create(0, 1);
    CHECK(device_start(0, &status) == 0, "%s", status.text);
    double_capacity(1 << 20);
    for (int i = 0; i < 5; i++) {
        CHECK(device_allocate(0, stream, BYTES, &memory, &status) == 0, "%s", status.text);
        release_memory(0, stream, memory, BYTES);
    }
    CHECK(double_calls("cudaMallocFromPoolAsync") > 5);
    double_synchronize(0);
    CHECK(live_now().device_blocks == 0 && counts_are(0, 0, 0, 0) && cudaGetLastError() == cudaSuccess);
}

/* A block of 1 KiB, as its holder. */
static struct parked_memory *
parked_block(void)
{
    struct parked_memory *parked = malloc(sizeof *parked);
    struct status status;
    *parked = (struct parked_memory){.holder = parked, .bytes = 1024};
    CHECK(device_allocate(1, NULL, parked->bytes, &parked->memory, &status) == 0, "%s", status.text);
    device_in_use_remove(parked->bytes);
    return parked;
}

TEST(parked_memory_goes_back_after_all_that_the_device_has_queued)
{
    unsigned char received[1024] = {0};
    void *stream = double_stream_create(1, 1);
    struct parked_memory *parked = parked_block();
    CHECK(double_copy_async(received, parked->memory, sizeof received, stream) == 0);
    CHECK(double_stream_destroy(stream) == 0);
    CHECK(device_park(1, parked) && device_park(1, parked_block()));
    CHECK(live_now().device_blocks == 2);
    device_pools_trim();
    double_synchronize(1);
    CHECK(live_now().device_blocks == 0 && double_faults() == 0 && cudaGetLastError() == cudaSuccess);
}

TEST(parked_memory_stays_where_the_device_cannot_be_waited_for)
{
    static const char *const calls[] = {"cudaMalloc", "cudaFree", "cudaStreamCreateWithFlags"};
    CHECK(device_park(1, parked_block()));
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        double_fail(calls[i], 1, cudaErrorUnknown, 0);
        device_pools_trim();
        CHECK(live_now().device_blocks >= 1, "%s", calls[i]);
    }
    device_pools_trim();
    double_synchronize(1);
    CHECK(live_now().device_blocks == 1 && cudaGetLastError() == cudaSuccess); /* that of the cudaFree that failed */
}

TEST(a_release_never_fails)
{
    struct status status;
    void *device = NULL, *pinned = NULL;
    CHECK(device_allocate(0, NULL, 64, &device, &status) == 0 && pinned_allocate(64, &pinned, &status) == 0);
    double_fail("cudaGetDevice", 1, cudaErrorUnknown, 1);
    release_memory(0, NULL, device, 64);
    pinned_release(pinned, 64);
    double_reset(0);
    CHECK(counts_are(0, 0, 0, 0) && cudaGetLastError() == cudaSuccess);
    CHECK(device_allocate(0, NULL, 64, &device, &status) == 0 && pinned_allocate(64, &pinned, &status) == 0);
    double_fail("cudaFreeAsync", 1, cudaErrorUnknown, 0);
    double_fail("cudaFreeHost", 1, cudaErrorUnknown, 0);
    release_memory(0, NULL, device, 64);
    pinned_release(pinned, 64);
    CHECK(counts_are(0, 0, 0, 0) && cudaGetLastError() == cudaSuccess);
}

static void *
allocate_and_release(void *argument)
{
    const int device = *(const int *)argument;
    struct status status;
    void *allocated[8];
    for (int round = 0; round < 50; round++) {
        for (size_t i = 0; i < 8; i++)
            CHECK(device_allocate(device, NULL, 16 + i, &allocated[i], &status) == 0, "%s", status.text);
        for (size_t i = 0; i < 8; i++)
            release_memory(device, NULL, allocated[i], 16 + i);
    }
    return NULL;
}

TEST(threads_may_allocate_at_once)
{
    pthread_t threads[4];
    int devices[4] = {0, 1, 0, 1};
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, allocate_and_release, &devices[i]) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK(counts_are(0, 0, 0, 0) && live_now().device_blocks == 0);
    CHECK(double_calls("cudaMemPoolCreate") == 2 && double_calls("cudaGetDeviceCount") == 1);
}
