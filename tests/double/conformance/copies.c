/* Copies and fills: what they move, what they refuse, and when the host may touch its side again. */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "../../c/tests.h"

enum { BYTES = 1 << 20 };

TEST(bytes_come_back)
{
    unsigned char *sent = malloc(BYTES), *received = malloc(BYTES);
    void *device, *other;
    for (int i = 0; i < BYTES; i++)
        sent[i] = (unsigned char)(i * 7 + (i >> 8));
    CHECK(cudaMalloc(&device, BYTES) == cudaSuccess && cudaMalloc(&other, BYTES) == cudaSuccess);
    CHECK(cudaMemcpy(device, sent, BYTES, cudaMemcpyHostToDevice) == cudaSuccess);
    CHECK(cudaMemcpy(other, device, BYTES, cudaMemcpyDeviceToDevice) == cudaSuccess);
    CHECK(cudaMemcpy(received, other, BYTES, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(memcmp(sent, received, BYTES) == 0);
    memset(received, 0, BYTES);
    CHECK(cudaMemcpy(received, sent, BYTES, cudaMemcpyDefault) == cudaSuccess);
    CHECK(memcmp(sent, received, BYTES) == 0);
    free(sent);
    free(received);
}

TEST(fills)
{
    unsigned char *device, received[100];
    CHECK(cudaMalloc((void **)&device, sizeof received) == cudaSuccess);
    CHECK(cudaMemset(device, 1, sizeof received) == cudaSuccess);
    CHECK(cudaMemsetAsync(device + 10, 2, 20, NULL) == cudaSuccess);
    CHECK(cudaMemcpy(received, device, sizeof received, cudaMemcpyDeviceToHost) == cudaSuccess);
    for (int i = 0; i < 100; i++)
        CHECK(received[i] == (i >= 10 && i < 30 ? 2 : 1), "byte %d is %d", i, received[i]);
}

TEST(no_bytes_are_no_error)
{
    char host;
    void *device;
    CHECK(cudaMalloc(&device, 1) == cudaSuccess);
    CHECK(cudaMemcpy(device, &host, 0, cudaMemcpyHostToDevice) == cudaSuccess);
    CHECK(cudaMemcpy(NULL, NULL, 0, cudaMemcpyDefault) == cudaSuccess);
    CHECK(cudaMemcpyAsync(NULL, NULL, 0, cudaMemcpyDeviceToHost, NULL) == cudaSuccess);
    CHECK(cudaMemsetAsync(device, 0, 0, NULL) == cudaSuccess);
}

TEST(more_than_the_allocation_is_refused)
{
    static char host[2 * BYTES];
    char *device;
    CHECK(cudaMalloc((void **)&device, BYTES) == cudaSuccess);
    CHECK(cudaMemcpy(device, host, 2 * BYTES, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(host, device, 2 * BYTES, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
    CHECK(cudaMemset(device, 0, 2 * BYTES) == cudaErrorInvalidValue);
    CHECK(cudaMemset(host, 0, 1) == cudaErrorInvalidValue);
}

TEST(a_kind_that_does_not_exist_is_refused)
{
    char host[2] = {0};
    CHECK(cudaMemcpy(host, host + 1, 1, (enum cudaMemcpyKind)7) == cudaErrorInvalidMemcpyDirection);
}

TEST(a_kind_that_does_not_fit_is_refused)
{
    char host[2] = {0};
    void *device;
    CHECK(cudaMalloc(&device, 1) == cudaSuccess);
    CHECK(cudaMemcpy(host, host + 1, 1, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(host, host + 1, 1, cudaMemcpyDeviceToDevice) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(NULL, host, 1, cudaMemcpyDefault) == cudaErrorInvalidValue);
}

TEST(a_pageable_source_may_change_at_once)
{
    unsigned char *host = malloc(BYTES), *received = malloc(BYTES);
    void *device;
    cudaStream_t stream;
    CHECK(cudaMalloc(&device, BYTES) == cudaSuccess && cudaStreamCreate(&stream) == cudaSuccess);
    memset(host, 1, BYTES);
    CHECK(cudaMemcpyAsync(device, host, BYTES, cudaMemcpyHostToDevice, stream) == cudaSuccess);
    memset(host, 2, BYTES);
    CHECK(cudaMemcpyAsync(received, device, BYTES, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
    /* ... and a pageable target has arrived. */
    CHECK(received[0] == 1 && received[BYTES - 1] == 1);
    free(host);
    free(received);
}

TEST(pinned_copies_are_done_when_their_stream_is)
{
    unsigned char *sent, *received;
    void *device;
    cudaStream_t stream;
    CHECK(cudaMallocHost((void **)&sent, BYTES) == cudaSuccess);
    CHECK(cudaMallocHost((void **)&received, BYTES) == cudaSuccess);
    CHECK(cudaMalloc(&device, BYTES) == cudaSuccess && cudaStreamCreate(&stream) == cudaSuccess);
    memset(sent, 3, BYTES);
    memset(received, 0, BYTES);
    CHECK(cudaMemcpyAsync(device, sent, BYTES, cudaMemcpyHostToDevice, stream) == cudaSuccess);
    CHECK(cudaMemcpyAsync(received, device, BYTES, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(memcmp(sent, received, BYTES) == 0);
}

TEST(a_copy_that_leaves_registered_memory_is_refused)
{
    enum { PAGE = 4096 };
    char *host = aligned_alloc(PAGE, 4 * PAGE);
    void *device;
    cudaStream_t stream;
    memset(host, 5, 4 * PAGE);
    CHECK(cudaMalloc(&device, 4 * PAGE) == cudaSuccess && cudaStreamCreate(&stream) == cudaSuccess);
    CHECK(cudaHostRegister(host, PAGE, cudaHostRegisterPortable) == cudaSuccess);
    CHECK(cudaHostRegister(host + 3 * PAGE, PAGE, cudaHostRegisterPortable) == cudaSuccess);
    CHECK(cudaMemcpyAsync(device, host, PAGE, cudaMemcpyHostToDevice, stream) == cudaSuccess);
    CHECK(cudaMemcpyAsync(device, host, 2 * PAGE, cudaMemcpyHostToDevice, stream) == cudaErrorInvalidValue);
    CHECK(cudaMemcpyAsync(device, host, 4 * PAGE, cudaMemcpyHostToDevice, stream) == cudaErrorInvalidValue);
    CHECK(cudaMemcpyAsync(host, device, 4 * PAGE, cudaMemcpyDeviceToHost, stream) == cudaErrorInvalidValue);
    cudaGetLastError();
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(cudaHostUnregister(host) == cudaSuccess && cudaHostUnregister(host + 3 * PAGE) == cudaSuccess);
    cudaStreamDestroy(stream);
    cudaFree(device);
    free(host);
}

TEST(a_blocking_copy_to_pinned_memory_has_arrived)
{
    unsigned char *received;
    void *device;
    CHECK(cudaMallocHost((void **)&received, BYTES) == cudaSuccess && cudaMalloc(&device, BYTES) == cudaSuccess);
    memset(received, 0, BYTES);
    CHECK(cudaMemset(device, 4, BYTES) == cudaSuccess);
    CHECK(cudaMemcpy(received, device, BYTES, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(received[0] == 4 && received[BYTES - 1] == 4);
}
