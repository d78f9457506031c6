/* What the tests of these rules make, and how many devices they have. Each test is a process of its own: what it made
 * ends with it. */
#ifndef VECADD_CONFORMANCE_MADE_H
#define VECADD_CONFORMANCE_MADE_H

#include <cuda_runtime_api.h>

#include "../../c/check.h"

static inline cudaStream_t
new_stream(unsigned flags)
{
    cudaStream_t stream = NULL;
    CHECK(cudaStreamCreateWithFlags(&stream, flags) == cudaSuccess);
    return stream;
}

static inline cudaEvent_t
new_event(void)
{
    cudaEvent_t event = NULL;
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
    return event;
}

static inline cudaMemPool_t
new_pool(int device)
{
    const struct cudaMemPoolProps properties = {
        .allocType = cudaMemAllocationTypePinned,
        .location = {.type = cudaMemLocationTypeDevice, .id = device},
    };
    cudaMemPool_t pool = NULL;
    CHECK(cudaMemPoolCreate(&pool, &properties) == cudaSuccess);
    return pool;
}

/* Asked in each test's own process: main has to leave CUDA alone. */
static inline int
devices(void)
{
    int count = 0;
    CHECK(cudaGetDeviceCount(&count) == cudaSuccess && count > 0);
    return count;
}

#endif
