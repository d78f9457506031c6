/* The driver's contexts: what makes one, which one is current, and what ends with one. A context takes hundreds of
 * megabytes of its device. Tests of two devices have nothing to test where there is one. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <string.h>

#include "../../c/tests.h"
#include "cuda/kernels.h"
#include "made.h"

enum { N = 1000, BYTES = N * sizeof(int) };

static void *
driver_function(const char *name, unsigned version)
{
    void *function = NULL;
    CHECK(cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, NULL) == cudaSuccess, "%s",
          name);
    return function;
}

static bool
has_context(int device)
{
    CUresult (*state)(CUdevice, unsigned *, int *) =
        (CUresult(*)(CUdevice, unsigned *, int *))driver_function("cuDevicePrimaryCtxGetState", 7000);
    unsigned flags;
    int active = -1;
    CHECK(state(device, &flags, &active) == CUDA_SUCCESS);
    return active != 0;
}

static CUcontext
primary_context(int device)
{
    CUresult (*retain)(CUcontext *, CUdevice) =
        (CUresult(*)(CUcontext *, CUdevice))driver_function("cuDevicePrimaryCtxRetain", 7000);
    CUcontext context = NULL;
    CHECK(retain(&context, device) == CUDA_SUCCESS);
    return context;
}

static CUcontext
current_context(void)
{
    CUresult (*get)(CUcontext *) = (CUresult(*)(CUcontext *))driver_function("cuCtxGetCurrent", 4000);
    CUcontext context = NULL;
    CHECK(get(&context) == CUDA_SUCCESS);
    return context;
}

static void
make_current(CUcontext context)
{
    CUresult (*set)(CUcontext) = (CUresult(*)(CUcontext))driver_function("cuCtxSetCurrent", 4000);
    CHECK(set(context) == CUDA_SUCCESS);
}

/* A context beside device 0's primary one, made current. */
static CUcontext
make_context(void)
{
    CUresult (*create)(CUcontext *, CUctxCreateParams *, unsigned, CUdevice) =
        (CUresult(*)(CUcontext *, CUctxCreateParams *, unsigned, CUdevice))driver_function("cuCtxCreate", 13000);
    CUcontext context = NULL;
    CHECK(create(&context, NULL, 0, 0) == CUDA_SUCCESS);
    return context;
}

static void
destroy_context(CUcontext context)
{
    CUresult (*destroy)(CUcontext) = (CUresult(*)(CUcontext))driver_function("cuCtxDestroy", 4000);
    CHECK(destroy(context) == CUDA_SUCCESS);
}

static int
current_device(void)
{
    int device = -1;
    CHECK(cudaGetDevice(&device) == cudaSuccess);
    return device;
}

TEST(questions_about_devices_make_no_context)
{
    struct cudaDeviceProp properties;
    int value, host = 0;
    char bus[32];
    unsigned type;
    CUpointer_attribute name = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    void *values[] = {&type};
    CUresult (*attributes)(unsigned, CUpointer_attribute *, void **, CUdeviceptr) =
        (CUresult(*)(unsigned, CUpointer_attribute *, void **, CUdeviceptr))driver_function("cuPointerGetAttributes",
                                                                                            7000);
    const int count = devices();
    for (int device = 0; device < count; device++) {
        CHECK(cudaGetDeviceProperties(&properties, device) == cudaSuccess);
        CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMemoryPoolsSupported, device) == cudaSuccess && value == 1);
        CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, device) == cudaSuccess);
        CHECK(device == 0 || cudaDeviceCanAccessPeer(&value, 0, device) == cudaSuccess);
        CHECK(device == 0 ||
              cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrPerformanceRank, 0, device) == cudaSuccess);
    }
    CHECK(attributes(1, &name, values, (CUdeviceptr)&host) == CUDA_SUCCESS && type == 0);
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(current_device() == 0 && current_context() == NULL);
    for (int device = 0; device < count; device++)
        CHECK(!has_context(device), "%d", device);
}

TEST(other_calls_make_the_current_devices_context)
{
    CHECK(devices() > 0 && current_context() == NULL);
    CHECK(cudaFree(NULL) == cudaSuccess);
    CHECK(has_context(0) && current_context() == primary_context(0));
    CHECK(devices() < 2 || !has_context(1));
}

TEST(setting_a_device_makes_its_context_alone)
{
    if (devices() < 2)
        return;
    CHECK(cudaSetDevice(1) == cudaSuccess);
    CHECK(has_context(1) && !has_context(0) && current_context() == primary_context(1));
}

/* What work on a device is made of, by the runtime. */
static void
work_on_current_device(void)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    enum cudaStreamCaptureStatus capturing;
    const int device = current_device();
    int found = -1;
    size_t left, all;
    void *memory, *locked;
    CHECK(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
    cudaMemPool_t pool = new_pool(device);
    cudaStream_t stream = new_stream(cudaStreamNonBlocking), other = new_stream(cudaStreamNonBlocking);
    cudaEvent_t event = new_event();
    CHECK(cudaStreamIsCapturing(stream, &capturing) == cudaSuccess);
    CHECK(cudaStreamGetDevice(stream, &found) == cudaSuccess && found == device, "%d", found);
    CHECK(cudaMallocFromPoolAsync(&memory, BYTES, pool, stream) == cudaSuccess);
    CHECK(cudaMemsetAsync(memory, 1, BYTES, stream) == cudaSuccess);
    const struct add_call call = {
        .component = COMPONENT_I32, .a = memory, .b = memory, .c = memory, .n = N, .stream = stream};
    CHECK(add_launch(&call) == cudaSuccess);
    CHECK(cudaEventRecord(event, stream) == cudaSuccess && cudaStreamWaitEvent(other, event, 0) == cudaSuccess);
    CHECK(cudaFreeAsync(memory, other) == cudaSuccess);
    CHECK(cudaHostAlloc(&locked, BYTES, cudaHostAllocPortable) == cudaSuccess && cudaFreeHost(locked) == cudaSuccess);
    CHECK(cudaMemGetInfo(&left, &all) == cudaSuccess);
    CHECK(cudaStreamSynchronize(other) == cudaSuccess && cudaEventQuery(event) == cudaSuccess);
    CHECK(cudaMemPoolTrimTo(pool, 0) == cudaSuccess && cudaMemPoolDestroy(pool) == cudaSuccess);
    CHECK(cudaEventDestroy(event) == cudaSuccess);
    CHECK(cudaStreamDestroy(stream) == cudaSuccess && cudaStreamDestroy(other) == cudaSuccess);
    CHECK(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
}

/* So is cuda:1 used, and left again, without a context on cuda:0. */
TEST(a_thread_without_a_context_keeps_its_device_after_work_in_another_ones_context)
{
    struct cudaPointerAttributes attributes;
    void *memory;
    if (devices() < 2)
        return;
    make_current(primary_context(1));
    CHECK(current_device() == 1);
    work_on_current_device();
    make_current(NULL);
    CHECK(current_context() == NULL && current_device() == 0, "%d", current_device());
    CHECK(has_context(1) && !has_context(0));
    CHECK(cudaMalloc(&memory, BYTES) == cudaSuccess);
    CHECK(cudaPointerGetAttributes(&attributes, memory) == cudaSuccess && attributes.device == 0);
    CHECK(current_context() == primary_context(0));
}

TEST(a_pool_that_another_device_may_use_makes_no_context_there)
{
    const struct cudaMemAccessDesc access = {.location = {.type = cudaMemLocationTypeDevice, .id = 1},
                                             .flags = cudaMemAccessFlagsProtReadWrite};
    int can = 0;
    void *memory;
    if (devices() < 2 || cudaDeviceCanAccessPeer(&can, 1, 0) != cudaSuccess || !can)
        return;
    CHECK(cudaFree(NULL) == cudaSuccess);
    cudaMemPool_t pool = new_pool(0);
    CHECK(cudaMemPoolSetAccess(pool, &access, 1) == cudaSuccess);
    CHECK(cudaMallocFromPoolAsync(&memory, BYTES, pool, NULL) == cudaSuccess);
    CHECK(cudaMemset(memory, 0, BYTES) == cudaSuccess && cudaStreamSynchronize(NULL) == cudaSuccess);
    CHECK(!has_context(1));
}

static void *
nothing_is_current_here(void *unused)
{
    (void)unused;
    CHECK(current_context() == NULL && current_device() == 0);
    return NULL;
}

TEST(a_new_thread_has_no_context_and_the_first_device)
{
    pthread_t thread;
    CHECK(cudaSetDevice(devices() - 1) == cudaSuccess);
    CHECK(pthread_create(&thread, NULL, nothing_is_current_here, NULL) == 0);
    pthread_join(thread, NULL);
}

TEST(the_runtime_works_in_a_context_of_the_drivers)
{
    CHECK(devices() > 0);
    const CUcontext context = make_context();
    CHECK(current_context() == context && current_device() == 0);
    work_on_current_device();
    CHECK(current_context() == context);
    destroy_context(context);
    CHECK(current_context() == NULL && current_device() == 0);
    work_on_current_device();
}

TEST(an_event_is_of_the_context_that_it_was_made_in)
{
    CHECK(cudaFree(NULL) == cudaSuccess);
    cudaEvent_t theirs = new_event();
    cudaStream_t theirs_too = new_stream(cudaStreamNonBlocking);
    const CUcontext context = make_context();
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    cudaEvent_t event = new_event();
    CHECK(cudaEventRecord(theirs, stream) == cudaErrorInvalidResourceHandle);
    CHECK(cudaEventRecord(event, theirs_too) == cudaErrorInvalidResourceHandle);
    CHECK(cudaEventRecord(event, stream) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(theirs_too, event, 0) == cudaSuccess);
    CHECK(cudaStreamSynchronize(theirs_too) == cudaSuccess);
    destroy_context(context);
    CHECK(cudaEventRecord(theirs, theirs_too) == cudaSuccess && cudaEventSynchronize(theirs) == cudaSuccess);
}

/* Memory is a device's, and a pool no context's: what was allocated on a stream of one is there after it. */
TEST(a_pools_memory_outlives_a_context)
{
    static unsigned char received[BYTES];
    void *memory;
    CHECK(cudaFree(NULL) == cudaSuccess);
    cudaMemPool_t pool = new_pool(0);
    const CUcontext context = make_context();
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    CHECK(cudaMallocFromPoolAsync(&memory, BYTES, pool, stream) == cudaSuccess);
    CHECK(cudaMemsetAsync(memory, 7, BYTES, stream) == cudaSuccess && cudaStreamSynchronize(stream) == cudaSuccess);
    destroy_context(context);
    CHECK(cudaMemcpy(received, memory, BYTES, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(received[0] == 7 && memcmp(received, received + 1, BYTES - 1) == 0);
    CHECK(cudaFreeAsync(memory, NULL) == cudaSuccess && cudaStreamSynchronize(NULL) == cudaSuccess);
    CHECK(cudaMemPoolDestroy(pool) == cudaSuccess);
}
