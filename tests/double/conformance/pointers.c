/* What the runtime and the driver say about a pointer. */
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "../../c/tests.h"
#include "made.h"

enum { BYTES = 3 << 20 };

struct answer {
    unsigned type;
    int device;
    CUdeviceptr start;
    size_t bytes;
    unsigned managed;
};

static PFN_cuPointerGetAttributes_v7000
entry_point(void)
{
    void *function = NULL;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    CHECK(cudaGetDriverEntryPointByVersion("cuPointerGetAttributes", &function, 7000, cudaEnableDefault, &found) ==
          cudaSuccess);
    CHECK(function && found == cudaDriverEntryPointSuccess, "%d", found);
    return (PFN_cuPointerGetAttributes_v7000)function;
}

static struct answer
ask(PFN_cuPointerGetAttributes_v7000 function, const void *pointer)
{
    struct answer answer = {.type = 99, .device = 99, .start = 99, .bytes = 99, .managed = 99};
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                   CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED};
    void *values[] = {&answer.type, &answer.device, &answer.start, &answer.bytes, &answer.managed};
    const CUresult result = function(5, names, values, (CUdeviceptr)pointer);
    CHECK(result == CUDA_SUCCESS, "%d", result);
    return answer;
}

TEST(a_device_pointer_has_a_range)
{
    char *memory;
    CHECK(cudaMalloc((void **)&memory, BYTES) == cudaSuccess);
    const char *places[] = {memory, memory + 1, memory + BYTES - 1};
    for (int i = 0; i < 3; i++) {
        const struct answer answer = ask(entry_point(), places[i]);
        CHECK(answer.type == CU_MEMORYTYPE_DEVICE && answer.device == 0 && !answer.managed);
        CHECK(answer.start == (CUdeviceptr)memory && answer.bytes == BYTES, "%zu", answer.bytes);
    }
}

TEST(pool_memory_has_a_range)
{
    char *memory;
    CHECK(cudaMallocAsync((void **)&memory, BYTES, NULL) == cudaSuccess);
    const struct answer answer = ask(entry_point(), memory + 5);
    CHECK(answer.type == CU_MEMORYTYPE_DEVICE && answer.device == 0);
    CHECK(answer.start == (CUdeviceptr)memory && answer.bytes >= BYTES, "%zu", answer.bytes);
    CHECK(cudaFreeAsync(memory, NULL) == cudaSuccess);
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
}

TEST(pinned_memory_is_host_memory)
{
    char *memory;
    CHECK(cudaMallocHost((void **)&memory, BYTES) == cudaSuccess);
    const struct answer answer = ask(entry_point(), memory + 7);
    CHECK(answer.type == CU_MEMORYTYPE_HOST && !answer.managed);
    CHECK(answer.start == (CUdeviceptr)memory && answer.bytes >= BYTES);
}

/* Each registration is a range of its own, also beside another one. */
TEST(registered_memory_has_a_range)
{
    char *memory = aligned_alloc(4096, 4 * 4096);
    CHECK(cudaHostRegister(memory, 2 * 4096, cudaHostRegisterPortable) == cudaSuccess);
    CHECK(cudaHostRegister(memory + 2 * 4096, 4096, cudaHostRegisterPortable) == cudaSuccess);
    const struct answer first = ask(entry_point(), memory + 2 * 4096 - 1);
    const struct answer second = ask(entry_point(), memory + 2 * 4096);
    CHECK(first.type == CU_MEMORYTYPE_HOST && second.type == CU_MEMORYTYPE_HOST);
    CHECK(first.start == (CUdeviceptr)memory && first.bytes == 2 * 4096, "%zu", first.bytes);
    CHECK(second.start == (CUdeviceptr)memory + 2 * 4096 && second.bytes == 4096, "%zu", second.bytes);
    CHECK(ask(entry_point(), memory + 3 * 4096).type == 0);
    free(memory);
}

TEST(ordinary_memory_is_unknown)
{
    int host;
    CHECK(cudaFree(NULL) == cudaSuccess);
    const struct answer answer = ask(entry_point(), &host);
    CHECK(answer.type == 0 && !answer.managed);
    CHECK(answer.device == -2, "%d", answer.device);
    CHECK(answer.start == 99 && answer.bytes == 99); /* not written at all */
    CHECK(ask(entry_point(), NULL).type == 0);
}

TEST(freed_memory_is_unknown)
{
    void *memory;
    CHECK(cudaMalloc(&memory, (size_t)256 << 20) == cudaSuccess);
    CHECK(cudaFree(memory) == cudaSuccess);
    CHECK(ask(entry_point(), memory).type == 0);
}

TEST(memory_of_a_capture_is_unknown_before_its_graph_runs)
{
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    cudaGraph_t graph;
    void *memory;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    CHECK(cudaMallocAsync(&memory, 4096, stream) == cudaSuccess);
    CHECK(ask(entry_point(), memory).type == 0);
    CHECK(cudaFreeAsync(memory, stream) == cudaSuccess);
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
}

static void *
ask_here(void *memory)
{
    CHECK(ask(entry_point(), memory).type == CU_MEMORYTYPE_DEVICE);
    return NULL;
}

TEST(any_thread_may_ask)
{
    void *memory;
    pthread_t thread;
    CHECK(cudaMalloc(&memory, BYTES) == cudaSuccess);
    CHECK(pthread_create(&thread, NULL, ask_here, memory) == 0);
    pthread_join(thread, NULL);
}

TEST(the_runtime_says_the_same)
{
    int host;
    void *device, *pinned;
    struct cudaPointerAttributes attributes;
    CHECK(cudaMalloc(&device, BYTES) == cudaSuccess && cudaMallocHost(&pinned, BYTES) == cudaSuccess);
    CHECK(cudaPointerGetAttributes(&attributes, device) == cudaSuccess);
    CHECK(attributes.type == cudaMemoryTypeDevice && attributes.device == 0 && attributes.devicePointer == device);
    CHECK(attributes.hostPointer == NULL);
    CHECK(cudaPointerGetAttributes(&attributes, pinned) == cudaSuccess);
    CHECK(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == pinned);
    CHECK(attributes.devicePointer == pinned);
    CHECK(cudaPointerGetAttributes(&attributes, &host) == cudaSuccess);
    CHECK(attributes.type == cudaMemoryTypeUnregistered && attributes.devicePointer == NULL);
    CHECK(attributes.device == cudaInvalidDeviceId, "%d", attributes.device);
}

TEST(an_unknown_driver_function_is_not_found)
{
    void *function = &function;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSuccess;
    CHECK(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &function, 7000, cudaEnableDefault, &found) ==
          cudaSuccess);
    CHECK(found == cudaDriverEntryPointSymbolNotFound, "%d", found);
    CHECK(function == NULL);
}
