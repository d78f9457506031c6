/* Two devices: whose memory a device may use, and copies between them. Nothing to test where there is one. */
#include <cuda_runtime_api.h>
#include <string.h>

#include "../../c/tests.h"
#include "cuda/kernels.h"
#include "made.h"

enum { BYTES = 1 << 16 };

TEST(a_device_is_no_peer_of_one_that_is_not_there)
{
    int can = 1;
    CHECK(cudaDeviceCanAccessPeer(&can, 0, devices()) == cudaErrorInvalidDevice);
    CHECK(cudaDeviceEnablePeerAccess(devices(), 0) == cudaErrorInvalidDevice);
}

TEST(access_is_enabled_once_and_disabled_once)
{
    int can = 0;
    if (devices() < 2 || cudaDeviceCanAccessPeer(&can, 0, 1) != cudaSuccess || !can)
        return;
    CHECK(cudaDeviceDisablePeerAccess(1) == cudaErrorPeerAccessNotEnabled);
    CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaSuccess);
    CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled);
    CHECK(cudaDeviceDisablePeerAccess(1) == cudaSuccess);
    CHECK(cudaDeviceDisablePeerAccess(1) == cudaErrorPeerAccessNotEnabled);
}

TEST(a_copy_between_devices_needs_no_access_and_follows_its_stream)
{
    static unsigned char received[BYTES];
    void *from, *to;
    if (devices() < 2)
        return;
    CHECK(cudaMalloc(&from, BYTES) == cudaSuccess);
    CHECK(cudaSetDevice(1) == cudaSuccess && cudaMalloc(&to, BYTES) == cudaSuccess);
    CHECK(cudaSetDevice(0) == cudaSuccess);
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    CHECK(cudaMemsetAsync(from, 7, BYTES, stream) == cudaSuccess);
    CHECK(cudaMemcpyPeerAsync(to, 1, from, 0, BYTES, stream) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(cudaMemcpy(received, to, BYTES, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(received[0] == 7 && memcmp(received, received + 1, BYTES - 1) == 0);
}

/* Memory of device 0 that device 1 may use, if it can at all; each byte is `byte`. */
static int *
shared_pool_memory(int byte, cudaMemPool_t *pool)
{
    const struct cudaMemAccessDesc access = {.location = {.type = cudaMemLocationTypeDevice, .id = 1},
                                             .flags = cudaMemAccessFlagsProtReadWrite};
    int can = 0;
    void *memory = NULL;
    if (devices() < 2 || cudaDeviceCanAccessPeer(&can, 1, 0) != cudaSuccess || !can)
        return NULL;
    *pool = new_pool(0);
    CHECK(cudaMemPoolSetAccess(*pool, &access, 1) == cudaSuccess);
    CHECK(cudaMallocFromPoolAsync(&memory, BYTES, *pool, NULL) == cudaSuccess);
    CHECK(cudaMemset(memory, byte, BYTES) == cudaSuccess && cudaStreamSynchronize(NULL) == cudaSuccess);
    return memory;
}

static bool
all_are(const void *memory, int byte)
{
    static unsigned char received[BYTES];
    CHECK(cudaMemcpy(received, memory, BYTES, cudaMemcpyDeviceToHost) == cudaSuccess);
    return received[0] == byte && memcmp(received, received + 1, BYTES - 1) == 0;
}

TEST(another_device_uses_a_pool_that_it_was_given)
{
    cudaMemPool_t pool;
    void *theirs;
    int *const memory = shared_pool_memory(1, &pool);
    if (!memory)
        return;
    CHECK(cudaSetDevice(1) == cudaSuccess && cudaMalloc(&theirs, BYTES) == cudaSuccess);
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    struct add_call call = {
        .component = COMPONENT_I32, .a = memory, .b = memory, .c = theirs, .n = BYTES / 4, .stream = stream};
    CHECK(add_launch(&call) == cudaSuccess && cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(all_are(theirs, 2));
    call.a = call.b = theirs;
    call.c = memory;
    CHECK(add_launch(&call) == cudaSuccess && cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(all_are(memory, 4));
    CHECK(cudaMemcpyAsync(theirs, memory, BYTES, cudaMemcpyDefault, stream) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess && all_are(theirs, 4));
    CHECK(cudaMemset(theirs, 5, BYTES) == cudaSuccess && cudaStreamSynchronize(NULL) == cudaSuccess);
    CHECK(cudaMemcpyAsync(memory, theirs, BYTES, cudaMemcpyDefault, stream) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess && all_are(memory, 5));
}

/* The memory is device 1's alone: device 0 may not fill it. */
static void
fill_from_device_1(void *memory, int value)
{
    CHECK(cudaSetDevice(1) == cudaSuccess);
    CHECK(cudaMemset(memory, value, BYTES) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess);
}

/* A driver was seen elsewhere to write nothing, and to report no error. */
TEST(copies_between_devices_arrive_in_a_pool_that_another_device_was_given)
{
    cudaMemPool_t pool;
    void *theirs;
    int *const memory = shared_pool_memory(1, &pool);
    if (!memory)
        return;
    CHECK(cudaSetDevice(1) == cudaSuccess && cudaMalloc(&theirs, BYTES) == cudaSuccess);
    for (int device = 0; device < 2; device++) {
        fill_from_device_1(theirs, 7 + device);
        CHECK(cudaSetDevice(device) == cudaSuccess);
        CHECK(cudaMemcpyPeerAsync(memory, 0, theirs, 1, BYTES, NULL) == cudaSuccess);
        CHECK(cudaDeviceSynchronize() == cudaSuccess && all_are(memory, 7 + device), "from device %d", device);
        fill_from_device_1(theirs, 0);
        CHECK(cudaSetDevice(device) == cudaSuccess);
        CHECK(cudaMemcpyPeerAsync(theirs, 1, memory, 0, BYTES, NULL) == cudaSuccess);
        CHECK(cudaDeviceSynchronize() == cudaSuccess && all_are(theirs, 7 + device), "from device %d", device);
    }
}

TEST(a_pools_own_device_and_one_that_is_not_there_are_no_others)
{
    cudaMemPool_t pool;
    struct cudaMemAccessDesc access = {.location = {.type = cudaMemLocationTypeDevice, .id = devices()},
                                       .flags = cudaMemAccessFlagsProtReadWrite};
    if (!shared_pool_memory(0, &pool))
        return;
    CHECK(cudaMemPoolSetAccess(pool, &access, 1) == cudaErrorInvalidDevice);
    access = (struct cudaMemAccessDesc){.location = {.type = cudaMemLocationTypeDevice, .id = 0},
                                        .flags = cudaMemAccessFlagsProtNone};
    CHECK(cudaMemPoolSetAccess(pool, &access, 1) == cudaErrorInvalidDevice);
}
