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

/* What the driver said about a first pointer's range is used for later pointers into it, and for no byte beside it. */
static void
a_known_range_answers_only_for_memory_inside_it(void)
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
an_error_has_its_code_and_names_its_call(void)
{
    static const struct {
        int error;
        enum status_code code;
    } rows[] = {
        {cudaErrorMemoryAllocation, STATUS_MEMORY},
        {cudaErrorInitializationError, STATUS_FORKED},
        {cudaErrorNoDevice, STATUS_NO_GPU},
        {cudaErrorInvalidResourceHandle, STATUS_VALUE},
        {cudaErrorUnknown, STATUS_CUDA},
        {cudaErrorStreamCaptureUnsupported, STATUS_CAPTURE},
        {cudaErrorECCUncorrectable, STATUS_DEVICE_LOST},
        {cudaErrorLaunchFailure, STATUS_DEVICE_LOST},
        {cudaErrorNotYetImplemented, STATUS_CUDA}, /* of which the table says nothing */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct status status;
        CHECK(device_status(&status, rows[i].error, "cudaSomething") == -1);
        CHECK(status.code == rows[i].code && status.cuda == rows[i].error, "%d: %s", rows[i].error, status.text);
        CHECK(strstr(status.text, "cudaSomething") && strstr(status.text, cudaGetErrorName(rows[i].error)));
    }
}

int
main(void)
{
    RUN(accepts_pointers_inside_allocations);
    RUN(a_known_range_answers_only_for_memory_inside_it);
    RUN(refuses_pointers_that_no_kernel_may_use);
    access_that_is_not_given_is_no_error();
    RUN(an_error_has_its_code_and_names_its_call);
    return check_report();
}
