/* memory.h on the CUDA-runtime double: what is held, what is given back, and what happens where there is no room. */
#include "gpu/memory.h"

#include <cuda_runtime_api.h>
#include <pthread.h>

#include "check.h"
#include "device_memory.h"
#include "double.h"
#include "failures.h"
#include "gpu/device.h"
#include "sums.h"

static bool
counts_are(size_t device_bytes, size_t device_blocks, size_t pinned_bytes, size_t pinned_blocks)
{
    const struct memory_counts counts = memory_counts();
    return counts.device_bytes == device_bytes && counts.device_blocks == device_blocks &&
           counts.pinned_bytes == pinned_bytes && counts.pinned_blocks == pinned_blocks;
}

static void
counts_what_is_held(void)
{
    struct status status;
    void *device[3], *pinned[2];
    CHECK(counts_are(0, 0, 0, 0));
    for (size_t i = 0; i < 3; i++)
        CHECK(device_allocate((int)i % 2, NULL, 100 * (i + 1), &device[i], &status) == 0, "%s", status.text);
    for (size_t i = 0; i < 2; i++)
        CHECK(pinned_allocate(1000 * (i + 1), &pinned[i], &status) == 0);
    CHECK(counts_are(600, 3, 3000, 2));
    release_memory(1, NULL, device[1], 200);
    pinned_release(pinned[0], 1000);
    CHECK(counts_are(400, 2, 2000, 1));
    release_memory(0, NULL, device[0], 100);
    release_memory(0, NULL, device[2], 300);
    pinned_release(pinned[1], 2000);
    CHECK(counts_are(0, 0, 0, 0));
    CHECK(live_now().device_blocks == 0 && live_now().pinned_blocks == 0);
}

static void
nothing_is_allocated_for_nothing(void)
{
    struct status status;
    void *device = &status, *pinned = NULL;
    CHECK(device_allocate(0, NULL, 0, &device, &status) == 0 && device == NULL);
    CHECK(double_calls("cudaMallocFromPoolAsync") == 0);
    CHECK(pinned_allocate(0, &pinned, &status) == 0 && pinned != NULL);
    pinned_release(pinned, 0);
    release_memory(0, NULL, NULL, 0);
    pinned_release(NULL, 0);
    CHECK(counts_are(0, 0, 0, 0));
}

static void
pinned_memory_is_zero_and_usable_at_once(void)
{
    struct status status;
    unsigned char *memory;
    size_t set = 0;
    CHECK(pinned_allocate(100000, (void **)&memory, &status) == 0);
    for (size_t i = 0; i < 100000; i++)
        set += memory[i] != 0;
    CHECK(set == 0);
    memory[99999] = 1;
    pinned_release(memory, 100000);
}

/* Through ordinary and through pinned host memory, and on a stream that other work waits in. */
static void
copies_arrive_before_they_return(void)
{
    enum { N = 5000 };
    struct status status;
    void *device, *stream = double_stream_create(1, 1);
    int32_t *ordinary = malloc(N * sizeof *ordinary), *pinned;
    CHECK(pinned_allocate(N * sizeof *pinned, (void **)&pinned, &status) == 0);
    for (unsigned seed = 0; seed < 20; seed++) {
        double_reset(seed);
        CHECK(device_allocate(1, stream, N * sizeof *pinned, &device, &status) == 0);
        sums_fill(COMPONENT_I32, pinned, N, seed);
        CHECK(device_copy_in(1, stream, device, pinned, N * sizeof *pinned, &status) == 0, "%s", status.text);
        memset(pinned, 0, N * sizeof *pinned);
        CHECK(device_copy_out(1, stream, ordinary, device, N * sizeof *pinned, &status) == 0);
        CHECK(device_copy_in(1, stream, device, ordinary, N * sizeof *pinned, &status) == 0);
        CHECK(device_copy_out(1, stream, pinned, device, N * sizeof *pinned, &status) == 0);
        sums_fill(COMPONENT_I32, ordinary, N, seed);
        CHECK(memcmp(pinned, ordinary, N * sizeof *pinned) == 0, "seed %u", seed);
        release_memory(1, stream, device, N * sizeof *pinned);
    }
    CHECK(device_copy_in(1, stream, NULL, NULL, 0, &status) == 0);
    CHECK(device_copy_out(1, stream, NULL, NULL, 0, &status) == 0);
    CHECK(double_faults() == 0);
    pinned_release(pinned, N * sizeof *pinned);
    free(ordinary);
}

static void
a_full_device_is_a_memory_error(void)
{
    struct status status;
    void *memory = &status;
    CHECK(device_allocate(0, NULL, (size_t)1 << 50, &memory, &status) < 0 && memory == NULL);
    CHECK(status.code == STATUS_MEMORY && status.cuda == cudaErrorMemoryAllocation);
    CHECK(strstr(status.text, "device 0") && strstr(status.text, "1125899906842624 bytes"), "%s", status.text);
    CHECK(double_calls("cudaMemPoolTrimTo") == 1 && double_calls("cudaMallocFromPoolAsync") == 2);
    double_fail("cudaHostAlloc", 1, cudaErrorMemoryAllocation, 0);
    CHECK(pinned_allocate(64, &memory, &status) < 0 && memory == NULL && status.code == STATUS_MEMORY);
    CHECK(strstr(status.text, "64 bytes of page-locked"), "%s", status.text);
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(counts_are(0, 0, 0, 0));
}

/* What a release has queued is room again once the stream is waited for and the pool trimmed. */
static void
what_was_released_is_trimmed_before_an_allocation_fails(void)
{
    struct status status;
    void *memory;
    double_fail("cudaMallocFromPoolAsync", 1, cudaErrorMemoryAllocation, 0);
    CHECK(device_allocate(0, NULL, 64, &memory, &status) == 0, "%s", status.text);
    CHECK(double_calls("cudaMemPoolTrimTo") == 1);
    CHECK(cudaGetLastError() == cudaSuccess);
    release_memory(0, NULL, memory, 64);
}

/* A device of 1 MiB, three quarters of which were released on the stream and not yet waited for. */
static void
what_was_released_is_waited_for_before_an_allocation_fails(void)
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

static void
parked_memory_goes_back_after_all_that_the_device_has_queued(void)
{
    unsigned char received[1024] = {0};
    void *stream = double_stream_create(1, 1);
    struct parked_memory *parked = parked_block();
    CHECK(double_copy_async(received, parked->memory, sizeof received, stream) == 0);
    CHECK(double_stream_destroy(stream) == 0);
    CHECK(device_park(1, parked) && device_park(1, parked_block()));
    CHECK(live_now().device_blocks == 2);
    device_parked_release();
    double_synchronize(1);
    CHECK(live_now().device_blocks == 0 && double_faults() == 0 && cudaGetLastError() == cudaSuccess);
}

static void
parked_memory_stays_where_the_device_cannot_be_waited_for(void)
{
    static const char *const calls[] = {"cudaMalloc", "cudaFree", "cudaStreamCreateWithFlags"};
    CHECK(device_park(1, parked_block()));
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        double_fail(calls[i], 1, cudaErrorUnknown, 0);
        device_parked_release();
        CHECK(live_now().device_blocks >= 1, "%s", calls[i]);
    }
    device_parked_release();
    double_synchronize(1);
    CHECK(live_now().device_blocks == 1 && cudaGetLastError() == cudaSuccess); /* that of the cudaFree that failed */
}

static void
a_release_never_fails(void)
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

static int
there_and_back(struct status *status)
{
    int value = 42, found = 0, result = -1;
    void *device = NULL, *pinned = NULL;
    if (device_allocate(1, NULL, sizeof value, &device, status) == 0 &&
        pinned_allocate(sizeof value, &pinned, status) == 0 &&
        device_copy_in(1, NULL, device, &value, sizeof value, status) == 0 &&
        device_copy_out(1, NULL, pinned, device, sizeof value, status) == 0)
        result = 0;
    if (result == 0)
        memcpy(&found, pinned, sizeof found);
    release_memory(1, NULL, device, sizeof value);
    pinned_release(pinned, sizeof value);
    CHECK(result < 0 || found == value);
    CHECK(counts_are(0, 0, 0, 0));
    return result;
}

static void
every_failure_is_told_and_leaves_nothing(void)
{
    static const char *const calls[] = {"cudaMallocFromPoolAsync", "cudaHostAlloc", "cudaMemcpyAsync",
                                        "cudaStreamSynchronize"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        CHECK(fail_each_call(calls[i], cudaErrorUnknown, there_and_back) > 0, "%s", calls[i]);
        fail_each_call(calls[i], cudaErrorMemoryAllocation, there_and_back);
    }
    CHECK(cudaGetLastError() == cudaSuccess);
}

static void *
allocate_and_release(void *argument)
{
    const int device = *(const int *)argument;
    struct status status;
    void *held[8];
    for (int round = 0; round < 50; round++) {
        for (size_t i = 0; i < 8; i++)
            CHECK(device_allocate(device, NULL, 16 + i, &held[i], &status) == 0, "%s", status.text);
        for (size_t i = 0; i < 8; i++)
            release_memory(device, NULL, held[i], 16 + i);
    }
    return NULL;
}

static void
threads_may_allocate_at_once(void)
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

int
main(void)
{
    RUN(counts_what_is_held);
    RUN(nothing_is_allocated_for_nothing);
    RUN(pinned_memory_is_zero_and_usable_at_once);
    RUN(copies_arrive_before_they_return);
    RUN(a_full_device_is_a_memory_error);
    RUN(what_was_released_is_trimmed_before_an_allocation_fails);
    RUN(what_was_released_is_waited_for_before_an_allocation_fails);
    RUN(parked_memory_goes_back_after_all_that_the_device_has_queued);
    RUN(parked_memory_stays_where_the_device_cannot_be_waited_for);
    RUN(a_release_never_fails);
    RUN(every_failure_is_told_and_leaves_nothing);
    RUN(threads_may_allocate_at_once);
    return check_report();
}
