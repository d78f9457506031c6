/* device.h on the CUDA-runtime double: what the devices are, how they start, which memory a kernel may use, and what an
 * error means. */
#include <cuda_runtime_api.h>

#include "base/runtime.h"
#include "check.h"
#include "cuda/kernels.h"
#include "device_memory.h"
#include "double.h"
#include "failures.h"
#include "gpu/device.h"
#include "gpu/memory.h"

static void
describes_the_devices(void)
{
    struct status status;
    struct device_facts facts;
    int count = 0, current = -1, driver, runtime_version;
    device_versions(&driver, &runtime_version);
    CHECK(driver == CUDART_VERSION && runtime_version == CUDART_VERSION);
    CHECK(!atomic_load(&runtime.cuda_started));
    CHECK(device_count(&count, &status) == 0 && count == 2);
    CHECK(atomic_load(&runtime.cuda_started));
    CHECK(device_current(&current, &status) == 0 && current == 0);
    CHECK(device_facts(1, &facts, &status) == 0);
    CHECK(facts.cc_major == 9 && facts.multiprocessors > 0 && facts.memory > 0 && facts.l2 > 0);
    CHECK(facts.memory_clock_khz > 0 && facts.memory_bus_bits > 0 && strstr(facts.name, "double"));
}

static void
refuses_ordinals_that_do_not_exist(void)
{
    struct status status;
    struct device_facts facts;
    void *memory;
    const int ordinals[] = {-2, 2, 1000};
    for (int i = 0; i < 3; i++) {
        CHECK(device_check_ordinal(ordinals[i], &status) < 0 && status.code == STATUS_VALUE);
        CHECK(strstr(status.text, "sees 2 GPUs"), "%s", status.text);
        CHECK(device_facts(ordinals[i], &facts, &status) < 0 && status.code == STATUS_VALUE);
        CHECK(device_allocate(ordinals[i], NULL, 16, &memory, &status) < 0 && status.code == STATUS_VALUE);
    }
    CHECK(device_check_ordinal(1, &status) == 0);
}

static void
accepts_pointers_inside_allocations(void)
{
    struct status status;
    int device = -1;
    char *memory = double_device_malloc(1, 4096);
    CHECK(check_pointer(memory, 4096, "a", &device, &status) == 0 && device == 1);
    CHECK(check_pointer(memory + 4095, 1, "a", &device, &status) == 0);
    CHECK(double_device_split(memory, 1024, 1) == 0);
    CHECK(check_pointer(memory + 1000, 3000, "a", &device, &status) == 0);
    CHECK(double_device_split(memory + 1024, 1024, 0) == 0);
    CHECK(check_pointer(memory + 1000, 1048, "a", &device, &status) == 0 && device == 1);
    CHECK(check_pointer(memory + 1000, 1049, "a", &device, &status) < 0 && status.code == STATUS_VALUE);
    CHECK(strstr(status.text, "1049 bytes") && strstr(status.text, "ends after 1048 bytes"), "%s", status.text);
    CHECK(double_calls("cudaGetDevice") == 0);
}

/* What the driver has said of a first pointer answers for the next ones that lie in it, and for no byte beside it. */
static void
a_known_range_answers_for_what_lies_in_it_alone(void)
{
    struct status status;
    int device = -1;
    char *memory = double_device_malloc(1, 4096);
    struct device_range known = {0};
    CHECK(device_check_pointer_near(memory + 16, 16, "a", &known, &device, &status) == 0, "%s", status.text);
    CHECK(known.begin == (uintptr_t)memory && known.end == (uintptr_t)memory + 4096 && known.device == 1);

    const struct {
        long offset;
        size_t bytes;
    } inside[] = {{0, 4096}, {0, 1}, {4095, 1}, {1, 4095}},
      beyond[] = {{0, 4097}, {1, 4096}, {4095, 2}, {4096, 1}, {-1, 2}, {-1, 1}, {-1, 4098}, {1, SIZE_MAX}};
    const long asked = double_calls("cuPointerGetAttributes");
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        device = -1;
        CHECK(device_check_pointer_near(memory + inside[i].offset, inside[i].bytes, "a", &known, &device, &status) ==
              0);
        CHECK(device == 1, "case %zu", i);
    }
    CHECK(double_calls("cuPointerGetAttributes") == asked);
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        struct device_range near = known;
        CHECK(device_check_pointer_near(memory + beyond[i].offset, beyond[i].bytes, "b", &near, &device, &status) < 0,
              "case %zu", i);
        CHECK(status.code == STATUS_VALUE && strncmp(status.text, "b: ", 3) == 0, "%s", status.text);
    }
    double_device_free(memory);
}

static void
refuses_pointers_that_no_kernel_may_use(void)
{
    struct status status;
    int device;
    char ordinary[64];
    char *memory = double_device_malloc(0, 4096), *freed = double_device_malloc(0, 4096);
    double_device_free(freed);
    const struct {
        const void *pointer;
        size_t bytes;
        const char *says;
    } cases[] = {
        {NULL, 16, "null"},
        {ordinary, 16, "not memory that CUDA knows"},
        {freed, 16, "not memory that CUDA knows"},
        {memory - 1, 16, "not memory that CUDA knows"},
        {memory + 4096, 1, "not memory that CUDA knows"},
        {memory, 4097, "4097 bytes"},
        {memory + 4000, 200, "after 96 bytes"},
        {memory, SIZE_MAX, "address space"},
        {memory, (size_t)1 << 62, "after 4096 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(check_pointer(cases[i].pointer, cases[i].bytes, "out", &device, &status) < 0, "case %zu", i);
        CHECK(status.code == STATUS_VALUE && strstr(status.text, cases[i].says), "%s", status.text);
        CHECK(strncmp(status.text, "out: ", 5) == 0, "%s", status.text);
    }
}

static const char *starting_call;

static void
failure_of_the_starting_call(void)
{
    struct status status;
    void *memory = NULL;
    double_fail(starting_call, 1, cudaErrorUnknown, 0);
    double_report_earlier(cudaErrorUnknown);
    CHECK(device_allocate(1, NULL, 64, &memory, &status) < 0, "%s", starting_call);
    CHECK(double_take_errors() == 0, "%s", starting_call);
    double_report_earlier(0);
    CHECK(status.code == STATUS_CUDA && status.cuda == cudaErrorUnknown && memory == NULL);
    CHECK(live_now().events == 0 && live_now().device_blocks == 0);
    CHECK(device_allocate(1, NULL, 64, &memory, &status) == 0, "after %s: %s", starting_call, status.text);
    release_memory(1, NULL, memory, 64);
    int current;
    CHECK(cudaGetDevice(&current) == cudaSuccess && current == 0);
}

static void
a_device_that_did_not_start_is_tried_again(void)
{
    static const char *const calls[] = {
        "cudaGetDeviceCount",    "cudaGetDriverEntryPointByVersion",
        "cudaGetDevice",         "cuDevicePrimaryCtxRetain",
        "cuCtxGetCurrent",       "cuCtxSetCurrent",
        "cudaMemGetInfo",        "cudaDeviceGetAttribute",
        "cudaMemPoolCreate",     "cudaMemPoolSetAttribute",
        "cudaFuncGetAttributes",
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        starting_call = calls[i];
        RUN(failure_of_the_starting_call);
    }
}

static cudaStream_t
stream_of_1(void)
{
    cudaStream_t stream;
    CHECK(cudaSetDevice(1) == cudaSuccess);
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    return stream;
}

/* Another library's kernel on device 1 adds device 0's memory of ours to itself. */
static void
another_device_uses_the_memory(void)
{
    enum { N = 1000, BYTES = N * sizeof(int32_t) };
    static int32_t ones[N], received[N];
    struct status status;
    void *memory;
    for (int i = 0; i < N; i++)
        ones[i] = i;
    CHECK(device_allocate(0, NULL, BYTES, &memory, &status) == 0, "%s", status.text);
    CHECK(device_copy_in(0, NULL, memory, ones, BYTES, &status) == 0, "%s", status.text);
    const struct add_call call = {
        .component = COMPONENT_I32, .a = memory, .b = memory, .c = memory, .n = N, .stream = stream_of_1()};
    CHECK(add_launch(&call) == cudaSuccess && cudaStreamSynchronize(call.stream) == cudaSuccess);
    CHECK(device_copy_out(0, NULL, received, memory, BYTES, &status) == 0, "%s", status.text);
    CHECK(received[1] == 2 && received[N - 1] == 2 * (N - 1) && double_faults() == 0);
    release_memory(0, NULL, memory, BYTES);
}

static void
memory_is_allocated_where_no_other_device_gets_access(void)
{
    struct status status;
    void *memory;
    if (starting_call)
        double_fail(starting_call, 1, cudaErrorUnknown, 1);
    else
        double_peer_access(0);
    CHECK(device_allocate(1, NULL, 64, &memory, &status) == 0, "%s", status.text);
    CHECK(double_take_errors() == 0);
    CHECK(starting_call || double_calls("cudaMemPoolSetAccess") == 0);
    release_memory(1, NULL, memory, 64);
}

static void
access_that_is_not_given_is_no_error(void)
{
    static const char *const calls[] = {"cudaMemPoolSetAccess", "cudaDeviceCanAccessPeer", NULL};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        starting_call = calls[i];
        RUN(memory_is_allocated_where_no_other_device_gets_access);
    }
}

static void
versions_that_are_not_told_leave_no_error(void)
{
    int driver = -1, runtime_version = -1;
    double_fail("cudaDriverGetVersion", 1, cudaErrorUnknown, 0);
    double_fail("cudaRuntimeGetVersion", 1, cudaErrorUnknown, 0);
    device_versions(&driver, &runtime_version);
    CHECK(driver == 0 && runtime_version == CUDART_VERSION);
    CHECK(double_take_errors() == 0);
}

static void
no_gpu_is_told_from_an_old_driver(void)
{
    struct status status;
    void *memory;
    int count;
    double_devices(0);
    CHECK(device_count(&count, &status) < 0 && status.code == STATUS_NO_GPU, "%s", status.text);
    double_driver(0);
    CHECK(device_count(&count, &status) < 0 && status.code == STATUS_NO_GPU);
    CHECK(strstr(status.text, "no NVIDIA driver") && status.cuda == cudaErrorInsufficientDriver, "%s", status.text);
    double_driver(12020);
    CHECK(device_allocate(0, NULL, 64, &memory, &status) < 0 && status.code == STATUS_DRIVER_TOO_OLD);
    CHECK(strstr(status.text, "12.2") && strstr(status.text, "13.0"), "%s", status.text);
    CHECK(cudaGetLastError() == cudaSuccess);
    double_driver(CUDART_VERSION);
    double_devices(2);
    CHECK(device_count(&count, &status) == 0 && count == 2);
}

static void
a_sticky_error_is_a_lost_device(void)
{
    struct status status;
    void *memory = NULL;
    CHECK(device_allocate(0, NULL, 64, &memory, &status) == 0);
    double_fail("cudaMallocFromPoolAsync", 1, cudaErrorLaunchFailure, 0);
    void *second;
    CHECK(device_allocate(0, NULL, 64, &second, &status) < 0 && status.code == STATUS_DEVICE_LOST);
    CHECK(device_allocate(0, NULL, 64, &second, &status) < 0 && status.code == STATUS_DEVICE_LOST);
    CHECK(strstr(status.text, "no device call of this process works"), "%s", status.text);
    release_memory(0, NULL, memory, 64);
}

static void
each_error_has_its_code(void)
{
    static const struct {
        int error;
        enum status_code code;
    } rows[] = {
        {cudaErrorMemoryAllocation, STATUS_MEMORY},
        {cudaErrorInitializationError, STATUS_FORKED},
        {cudaErrorNoDevice, STATUS_NO_GPU},
        {cudaErrorInvalidDevice, STATUS_VALUE},
        {cudaErrorInvalidResourceHandle, STATUS_VALUE},
        {cudaErrorInvalidValue, STATUS_CUDA},
        {cudaErrorCudartUnloading, STATUS_CUDA},
        {cudaErrorNoKernelImageForDevice, STATUS_CUDA},
        {cudaErrorSystemDriverMismatch, STATUS_CUDA},
        {cudaErrorSystemNotReady, STATUS_CUDA},
        {cudaErrorDevicesUnavailable, STATUS_CUDA},
        {cudaErrorUnknown, STATUS_CUDA},
        {cudaErrorStreamCaptureUnsupported, STATUS_CAPTURE},
        {cudaErrorStreamCaptureInvalidated, STATUS_CAPTURE},
        {cudaErrorStreamCaptureImplicit, STATUS_CAPTURE},
        {cudaErrorECCUncorrectable, STATUS_DEVICE_LOST},
        {cudaErrorNvlinkUncorrectable, STATUS_DEVICE_LOST},
        {cudaErrorContained, STATUS_DEVICE_LOST},
        {cudaErrorContextIsDestroyed, STATUS_DEVICE_LOST},
        {cudaErrorTensorMemoryLeak, STATUS_DEVICE_LOST},
        {cudaErrorIllegalAddress, STATUS_DEVICE_LOST},
        {cudaErrorLaunchTimeout, STATUS_DEVICE_LOST},
        {cudaErrorAssert, STATUS_DEVICE_LOST},
        {cudaErrorHardwareStackError, STATUS_DEVICE_LOST},
        {cudaErrorIllegalInstruction, STATUS_DEVICE_LOST},
        {cudaErrorMisalignedAddress, STATUS_DEVICE_LOST},
        {cudaErrorInvalidAddressSpace, STATUS_DEVICE_LOST},
        {cudaErrorInvalidPc, STATUS_DEVICE_LOST},
        {cudaErrorLaunchFailure, STATUS_DEVICE_LOST},
        {cudaErrorNotYetImplemented, STATUS_CUDA},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct status status;
        CHECK(device_status(&status, rows[i].error, "cudaSomething") == -1);
        CHECK(status.code == rows[i].code && status.cuda == rows[i].error, "%d: %s", rows[i].error, status.text);
        CHECK(strstr(status.text, "cudaSomething") && strstr(status.text, cudaGetErrorName(rows[i].error)));
    }
}

static void
a_forked_child_is_refused_by_name(void)
{
    struct status status;
    void *memory = NULL, *pinned = NULL, *more;
    int count;
    CHECK(device_allocate(0, NULL, 64, &memory, &status) == 0);
    CHECK(pinned_allocate(64, &pinned, &status) == 0);
    const pid_t child = fork();
    if (child == 0) {
        CHECK(device_count(&count, &status) < 0 && status.code == STATUS_FORKED);
        CHECK(strstr(status.text, "spawn"), "%s", status.text);
        CHECK(device_allocate(0, NULL, 64, &more, &status) < 0 && status.code == STATUS_FORKED);
        CHECK(pinned_allocate(64, &more, &status) < 0 && status.code == STATUS_FORKED);
        release_memory(0, NULL, memory, 64);
        pinned_release(pinned, 64);
        _exit(0);
    }
    int how = -1;
    CHECK(waitpid(child, &how, 0) == child && how == 0);
    release_memory(0, NULL, memory, 64);
    pinned_release(pinned, 64);
    CHECK(memory_counts().device_blocks == 0 && memory_counts().pinned_blocks == 0);
}

static void
a_child_forked_before_cuda_may_use_it(void)
{
    const pid_t child = fork();
    if (child == 0) {
        struct status status;
        int count;
        CHECK(device_count(&count, &status) == 0 && count == 2);
        _exit(0);
    }
    int how = -1;
    CHECK(waitpid(child, &how, 0) == child && how == 0);
}

int
main(void)
{
    RUN(describes_the_devices);
    RUN(refuses_ordinals_that_do_not_exist);
    RUN(accepts_pointers_inside_allocations);
    RUN(a_known_range_answers_for_what_lies_in_it_alone);
    RUN(refuses_pointers_that_no_kernel_may_use);
    RUN(a_device_that_did_not_start_is_tried_again);
    RUN(another_device_uses_the_memory);
    access_that_is_not_given_is_no_error();
    RUN(versions_that_are_not_told_leave_no_error);
    RUN(no_gpu_is_told_from_an_old_driver);
    RUN(a_sticky_error_is_a_lost_device);
    RUN(each_error_has_its_code);
    RUN(a_forked_child_is_refused_by_name);
    RUN(a_child_forked_before_cuda_may_use_it);
    return check_report();
}
