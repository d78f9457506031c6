/* Memory that host and device share: page-locked memory that a kernel uses in place, and managed memory. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <string.h>

#include "../../c/tests.h"
#include "cuda/kernels.h"

enum { COMPONENTS = 1000, BYTES = COMPONENTS * sizeof(float) };

static void
fill(float *a, float *b, float *c)
{
    for (int i = 0; i < COMPONENTS; i++) {
        a[i] = (float)i;
        b[i] = 1;
        c[i] = -1;
    }
}

static void
check_sums(const float *c)
{
    for (int i = 0; i < COMPONENTS; i++)
        CHECK(c[i] == (float)(i + 1), "%d: %g", i, (double)c[i]);
}

static void
add_and_wait(const float *a, const float *b, float *c)
{
    const struct add_call call = {.component = COMPONENT_F32, .a = a, .b = b, .c = c, .n = COMPONENTS};
    CHECK(add_launch(&call) == cudaSuccess);
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
}

TEST(page_locked_memory_has_an_address_for_the_device)
{
    char *memory, *device = NULL;
    CHECK(cudaHostAlloc((void **)&memory, BYTES, cudaHostAllocPortable | cudaHostAllocMapped) == cudaSuccess);
    CHECK(cudaHostGetDevicePointer((void **)&device, memory, 0) == cudaSuccess);
    CHECK(device == memory); /* under unified addressing */
    CHECK(cudaHostGetDevicePointer((void **)&device, memory + 8, 0) == cudaSuccess);
    CHECK(device == memory + 8);
}

TEST(memory_that_is_not_page_locked_has_none)
{
    static char host[BYTES];
    void *device;
    CHECK(cudaFree(NULL) == cudaSuccess);
    CHECK(cudaHostGetDevicePointer(&device, host, 0) == cudaErrorInvalidValue);
    CHECK(cudaHostGetDevicePointer(&device, NULL, 0) == cudaErrorInvalidValue);
}

TEST(the_address_takes_no_flags)
{
    void *memory, *device;
    CHECK(cudaMallocHost(&memory, BYTES) == cudaSuccess);
    CHECK(cudaHostGetDevicePointer(&device, memory, 0) == cudaSuccess);
    CHECK(cudaHostGetDevicePointer(&device, memory, 1) == cudaErrorInvalidValue);
}

TEST(a_kernel_adds_page_locked_memory_in_place)
{
    float *host, *device;
    CHECK(cudaMallocHost((void **)&host, 3 * BYTES) == cudaSuccess);
    fill(host, host + COMPONENTS, host + 2 * COMPONENTS);
    CHECK(cudaHostGetDevicePointer((void **)&device, host, 0) == cudaSuccess);
    add_and_wait(device, device + COMPONENTS, device + 2 * COMPONENTS);
    check_sums(host + 2 * COMPONENTS);
}

TEST(managed_memory_is_the_hosts_before_a_launch_and_after_the_wait)
{
    float *a, *b, *c;
    CHECK(cudaMallocManaged((void **)&a, BYTES, cudaMemAttachGlobal) == cudaSuccess);
    CHECK(cudaMallocManaged((void **)&b, BYTES, cudaMemAttachGlobal) == cudaSuccess);
    CHECK(cudaMallocManaged((void **)&c, BYTES, cudaMemAttachGlobal) == cudaSuccess);
    for (int round = 0; round < 3; round++) {
        fill(a, b, c);
        add_and_wait(a, b, c);
        check_sums(c);
    }
    CHECK(cudaFree(a) == cudaSuccess && cudaFree(b) == cudaSuccess && cudaFree(c) == cudaSuccess);
}

TEST(managed_memory_says_what_it_is)
{
    void *memory;
    struct cudaPointerAttributes attributes;
    CHECK(cudaMallocManaged(&memory, BYTES, cudaMemAttachGlobal) == cudaSuccess);
    CHECK(cudaPointerGetAttributes(&attributes, memory) == cudaSuccess);
    CHECK(attributes.type == cudaMemoryTypeManaged, "%d", (int)attributes.type);
    CHECK(attributes.devicePointer == memory && attributes.hostPointer == memory);
    CHECK(cudaFree(memory) == cudaSuccess);
    CHECK(cudaFree(memory) == cudaErrorInvalidValue);
}

TEST(managed_memory_has_a_flag)
{
    void *memory;
    CHECK(cudaMallocManaged(&memory, BYTES, 0) == cudaErrorInvalidValue);
}

TEST(a_device_says_whether_it_has_managed_memory)
{
    int managed = -1, concurrent = -1;
    CHECK(cudaDeviceGetAttribute(&managed, cudaDevAttrManagedMemory, 0) == cudaSuccess && managed == 1);
    CHECK(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0) == cudaSuccess);
    CHECK(concurrent == 0 || concurrent == 1, "%d", concurrent);
}
