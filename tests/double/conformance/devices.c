/* Devices, versions and the error of a thread's last call. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <string.h>

#include "../../c/tests.h"

TEST(versions_need_no_device)
{
    int driver = 0, runtime = 0;
    CHECK(cudaDriverGetVersion(&driver) == cudaSuccess);
    CHECK(cudaRuntimeGetVersion(&runtime) == cudaSuccess);
    CHECK(runtime == CUDART_VERSION, "%d", runtime);
    CHECK(driver >= runtime, "%d", driver);
}

TEST(a_device_that_is_not_there_is_refused)
{
    int count = 0, current = -1, value;
    struct cudaDeviceProp properties;
    CHECK(cudaGetDeviceCount(&count) == cudaSuccess && count > 0);
    CHECK(cudaSetDevice(count) == cudaErrorInvalidDevice);
    CHECK(cudaSetDevice(-1) == cudaErrorInvalidDevice);
    CHECK(cudaGetDeviceProperties(&properties, count) == cudaErrorInvalidDevice);
    CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, count) == cudaErrorInvalidDevice);
    CHECK(cudaGetDevice(&current) == cudaSuccess);
    CHECK(current == 0, "%d", current);
}

TEST(properties_and_attributes_agree)
{
    struct cudaDeviceProp properties;
    int value;
    char bus[32] = "";
    CHECK(cudaGetDeviceProperties(&properties, 0) == cudaSuccess);
    static const struct CUuuid_st none;
    CHECK(memcmp(&properties.uuid, &none, sizeof none) != 0);
    CHECK(properties.name[0] != '\0');
    CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0) == cudaSuccess);
    CHECK(value == properties.multiProcessorCount && value > 0);
    CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrL2CacheSize, 0) == cudaSuccess);
    CHECK(value == properties.l2CacheSize && value > 0);
    CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess);
    CHECK(value == properties.major);
    CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrGlobalMemoryBusWidth, 0) == cudaSuccess);
    CHECK(value == properties.memoryBusWidth && value > 0);
    CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMemoryClockRate, 0) == cudaSuccess);
    CHECK(value > 0);
    CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrClockRate, 0) == cudaSuccess);
    CHECK(value > 0);
    CHECK(properties.maxBlocksPerMultiProcessor > 0 && properties.regsPerMultiprocessor >= 65536);
    CHECK(properties.sharedMemPerMultiprocessor > properties.reservedSharedMemPerBlock);
    CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, 0) == cudaSuccess);
    CHECK(strlen(bus) == 12, "%s", bus);
}

TEST(free_memory_is_part_of_all_memory)
{
    size_t free_bytes, total;
    CHECK(cudaMemGetInfo(&free_bytes, &total) == cudaSuccess);
    CHECK(0 < free_bytes && free_bytes <= total);
}

TEST(the_last_error_stays_until_it_is_taken)
{
    int device;
    CHECK(cudaSetDevice(-1) == cudaErrorInvalidDevice);
    CHECK(cudaGetDevice(&device) == cudaSuccess);
    CHECK(cudaPeekAtLastError() == cudaErrorInvalidDevice);
    CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
    CHECK(cudaGetLastError() == cudaSuccess);
}

static void *
last_error_here(void *found)
{
    *(cudaError_t *)found = cudaGetLastError();
    return NULL;
}

TEST(the_last_error_is_the_threads_own)
{
    pthread_t thread;
    cudaError_t found = cudaErrorUnknown;
    CHECK(cudaSetDevice(-1) == cudaErrorInvalidDevice);
    CHECK(pthread_create(&thread, NULL, last_error_here, &found) == 0);
    pthread_join(thread, NULL);
    CHECK(found == cudaSuccess, "%d", found);
}

TEST(errors_have_names)
{
    CHECK(strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation") == 0);
    CHECK(strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory") == 0);
    CHECK(strcmp(cudaGetErrorName(cudaErrorInvalidResourceHandle), "cudaErrorInvalidResourceHandle") == 0);
    CHECK(strcmp(cudaGetErrorString(cudaErrorInvalidResourceHandle), "invalid resource handle") == 0);
    CHECK(strcmp(cudaGetErrorString((cudaError_t)1000), "unrecognized error code") == 0);
}

TEST(a_forked_child_cannot_use_cuda)
{
    void *memory;
    int how = -1;
    CHECK(cudaMalloc(&memory, 1) == cudaSuccess);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        int version = 0;
        const int refused = cudaMalloc(&memory, 1) == cudaErrorInitializationError;
        _exit(refused && cudaDriverGetVersion(&version) == cudaSuccess && version > 0 ? 0 : 1);
    }
    CHECK(waitpid(child, &how, 0) == child && how == 0, "%#x", (unsigned)how);
    CHECK(cudaFree(memory) == cudaSuccess);
}
