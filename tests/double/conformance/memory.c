/* Device memory, pinned memory, and what is refused of them. */
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdlib.h>

#include "../../c/tests.h"
#include "made.h"

TEST(device_memory_is_aligned)
{
    void *memory[3];
    for (int i = 0; i < 3; i++) {
        CHECK(cudaMalloc(&memory[i], 1 + (size_t)i) == cudaSuccess);
        CHECK((uintptr_t)memory[i] % 256 == 0);
    }
    CHECK(memory[0] != memory[1] && memory[1] != memory[2]);
    for (int i = 0; i < 3; i++)
        CHECK(cudaFree(memory[i]) == cudaSuccess);
}

TEST(nothing_is_a_null_pointer)
{
    void *device = &device, *host = &host;
    CHECK(cudaMalloc(&device, 0) == cudaSuccess);
    CHECK(device == NULL);
    CHECK(cudaMallocHost(&host, 0) == cudaSuccess);
    CHECK(host == NULL);
    CHECK(cudaFree(NULL) == cudaSuccess);
    CHECK(cudaFreeHost(NULL) == cudaSuccess);
}

TEST(too_much_is_out_of_memory)
{
    void *memory;
    CHECK(cudaMalloc(&memory, (size_t)1 << 50) == cudaErrorMemoryAllocation);
    CHECK(cudaHostAlloc(&memory, (size_t)1 << 50, cudaHostAllocDefault) == cudaErrorMemoryAllocation);
    CHECK(cudaMalloc(&memory, 1 << 20) == cudaSuccess);
    CHECK(cudaFree(memory) == cudaSuccess);
}

TEST(what_was_not_allocated_cannot_be_freed)
{
    int host;
    void *device, *pinned;
    CHECK(cudaMalloc(&device, 1024) == cudaSuccess);
    CHECK(cudaMallocHost(&pinned, 1024) == cudaSuccess);
    CHECK(cudaFree(&host) == cudaErrorInvalidValue);
    CHECK(cudaFree(pinned) == cudaErrorInvalidValue);
    CHECK(cudaFreeHost(&host) == cudaErrorInvalidValue);
    CHECK(cudaFreeHost(device) == cudaErrorInvalidValue);
    CHECK(cudaFree(device) == cudaSuccess);
    CHECK(cudaFree(device) == cudaErrorInvalidValue);
    CHECK(cudaFreeHost(pinned) == cudaSuccess);
    CHECK(cudaFreeHost(pinned) == cudaErrorInvalidValue);
}

TEST(pinned_memory_is_the_hosts)
{
    enum { BYTES = 5000 };
    unsigned char *memory;
    CHECK(cudaHostAlloc((void **)&memory, BYTES, cudaHostAllocPortable | cudaHostAllocMapped) == cudaSuccess);
    for (int i = 0; i < BYTES; i++)
        memory[i] = (unsigned char)i;
    CHECK(memory[BYTES - 1] == (unsigned char)(BYTES - 1));
    CHECK(cudaFreeHost(memory) == cudaSuccess);
    CHECK(cudaHostAlloc((void **)&memory, BYTES, 0x80) == cudaErrorInvalidValue);
}

/* Queues fills that take a GPU some milliseconds on a non-blocking stream, which it then destroys. `filled` is recorded
 * after them. */
static void
fill_on_a_stream_that_goes(cudaEvent_t filled)
{
    enum { BYTES = 32 << 20, FILLS = 60 };
    static void *memory;
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    CHECK(memory || cudaMalloc(&memory, BYTES) == cudaSuccess);
    for (int i = 0; i < FILLS; i++)
        CHECK(cudaMemsetAsync(memory, i, BYTES, stream) == cudaSuccess);
    CHECK(cudaEventRecord(filled, stream) == cudaSuccess);
    CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

/* The only call that waits for all streams, those whose handles are gone too, and may be made while one captures. */
TEST(the_blocking_free_waits_for_every_stream)
{
    cudaEvent_t filled = new_event();
    void *memory;
    for (int round = 0; round < 2; round++) {
        fill_on_a_stream_that_goes(filled);
        CHECK(cudaMalloc(&memory, 1) == cudaSuccess && cudaFree(memory) == cudaSuccess);
        CHECK(cudaEventQuery(filled) == cudaSuccess);
    }
    CHECK(cudaEventDestroy(filled) == cudaSuccess);
}

TEST(the_blocking_free_waits_beside_a_capture)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaStream_t captured = new_stream(cudaStreamNonBlocking);
    cudaEvent_t filled = new_event();
    cudaGraph_t graph = NULL;
    void *memory;
    fill_on_a_stream_that_goes(filled);
    CHECK(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal) == cudaSuccess);
    CHECK(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
    CHECK(cudaMalloc(&memory, 1) == cudaSuccess && cudaFree(memory) == cudaSuccess);
    CHECK(cudaEventQuery(filled) == cudaSuccess);
    CHECK(cudaStreamEndCapture(captured, &graph) == cudaSuccess);
    CHECK(cudaGraphDestroy(graph) == cudaSuccess);
    CHECK(cudaStreamDestroy(captured) == cudaSuccess && cudaEventDestroy(filled) == cudaSuccess);
}

TEST(memory_is_registered_once)
{
    enum { BYTES = 1 << 16 };
    void *memory = aligned_alloc(4096, BYTES);
    CHECK(cudaHostUnregister(memory) == cudaErrorHostMemoryNotRegistered);
    CHECK(cudaHostRegister(memory, BYTES, cudaHostRegisterDefault) == cudaSuccess);
    CHECK(cudaHostRegister(memory, BYTES, cudaHostRegisterDefault) == cudaErrorHostMemoryAlreadyRegistered);
    CHECK(cudaHostUnregister(memory) == cudaSuccess);
    free(memory);
}
