/* Two devices: whose memory a device may use, and copies between them. Nothing to test where there is one. */
#include <cuda_runtime_api.h>
#include <string.h>

#include "../../c/check.h"

enum { BYTES = 1 << 16 };

/* Asked in each test's own process: main has to leave CUDA alone. */
static int
devices(void)
{
    int count = 0;
    CHECK(cudaGetDeviceCount(&count) == cudaSuccess);
    return count;
}

static void
test_a_device_is_no_peer_of_one_that_is_not_there(void)
{
    int can = 1;
    CHECK(cudaDeviceCanAccessPeer(&can, 0, devices()) == cudaErrorInvalidDevice);
    CHECK(cudaDeviceEnablePeerAccess(devices(), 0) == cudaErrorInvalidDevice);
}

static void
test_access_is_enabled_once_and_disabled_once(void)
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

static void
test_a_copy_between_devices_needs_no_access_and_follows_its_stream(void)
{
    static unsigned char received[BYTES];
    void *from, *to;
    cudaStream_t stream;
    if (devices() < 2)
        return;
    CHECK(cudaMalloc(&from, BYTES) == cudaSuccess);
    CHECK(cudaSetDevice(1) == cudaSuccess && cudaMalloc(&to, BYTES) == cudaSuccess);
    CHECK(cudaSetDevice(0) == cudaSuccess);
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    CHECK(cudaMemsetAsync(from, 7, BYTES, stream) == cudaSuccess);
    CHECK(cudaMemcpyPeerAsync(to, 1, from, 0, BYTES, stream) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(cudaMemcpy(received, to, BYTES, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(received[0] == 7 && memcmp(received, received + 1, BYTES - 1) == 0);
    CHECK(cudaStreamDestroy(stream) == cudaSuccess);
    CHECK(cudaFree(from) == cudaSuccess && cudaFree(to) == cudaSuccess);
}

int
main(void)
{
    RUN(test_a_device_is_no_peer_of_one_that_is_not_there);
    RUN(test_access_is_enabled_once_and_disabled_once);
    RUN(test_a_copy_between_devices_needs_no_access_and_follows_its_stream);
    return check_report();
}
