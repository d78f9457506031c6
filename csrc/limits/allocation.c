/* What memory costs where it is made and given back each time: the device's by cudaMalloc, which maps it, and from a
 * stream-ordered pool, which keeps it; the host's page-locked. */
#include <cuda_runtime_api.h>

#include "device.h"
#include "probe.h"
#include "probes.h"

enum {
    SMALLEST = 4 << 10,
    STEP = 4,
    ARRAYS = 3, /* held at once, as an addition holds them */
    ROUNDS = 9,
    ROUNDS_OF_LARGE = 3,   /* what is freed slows the device for 2.7 ms a GiB */
    LARGE = 64 << 20,      /* also the largest that the pool is asked for, which keeps it */
    PINNED_MOST = 4 << 20, /* 2 ms */
    POOLED = 32,
};

typedef int make(const struct device_scope *scope, cudaStream_t stream, size_t bytes, void **memory,
                 struct status *status);
typedef void give_back(cudaStream_t stream, void *memory);

static int
make_by_malloc(const struct device_scope *scope, cudaStream_t stream, size_t bytes, void **memory,
               struct status *status)
{
    (void)scope, (void)stream;
    const cudaError_t error = cudaMalloc(memory, bytes);
    if (error == cudaSuccess)
        return 0;
    *memory = NULL;
    return device_status(status, error, "cudaMalloc");
}

static void
give_back_malloc(cudaStream_t stream, void *memory)
{
    (void)stream;
    cudaFree(memory);
}

/* Seconds of making all arrays, and of giving them back; what is done with them between is outside of the clock. */
static int
made_once(const struct device_scope *scope, cudaStream_t stream, make *make, give_back *give_back, size_t bytes,
          double *seconds, struct status *status)
{
    void *memory[ARRAYS] = {NULL};
    int result = 0;
    double begin = probe_now();
    for (int i = 0; i < ARRAYS && result == 0; i++)
        result = make(scope, stream, bytes, &memory[i], status);
    *seconds = probe_now() - begin;
    for (int i = 0; i < ARRAYS && result == 0; i++) {
        const cudaError_t error = cudaMemsetAsync(memory[i], 0, bytes, stream);
        if (error != cudaSuccess)
            result = device_status(status, error, "cudaMemsetAsync");
    }
    const cudaError_t waited = stream_wait(stream);
    if (waited != cudaSuccess && result == 0)
        result = device_status(status, waited, "cudaStreamSynchronize");
    begin = probe_now();
    for (int i = 0; i < ARRAYS; i++)
        if (memory[i])
            give_back(stream, memory[i]);
    *seconds += probe_now() - begin;
    return result;
}

/* The median of the rounds after a first one, each with a stream of its own. */
static int
made(const struct device_scope *scope, make *make, give_back *give_back, size_t bytes, double *seconds,
     struct status *status)
{
    double each[ROUNDS];
    const int rounds = bytes > LARGE ? ROUNDS_OF_LARGE : ROUNDS;
    for (int round = -1; round < rounds; round++) {
        cudaStream_t stream;
        const cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        if (error != cudaSuccess)
            return device_status(status, error, "cudaStreamCreateWithFlags");
        const int result = made_once(scope, stream, make, give_back, bytes, &each[round < 0 ? 0 : round], status);
        cudaStreamDestroy(stream);
        if (result < 0)
            return -1;
    }
    *seconds = probe_median(each, rounds);
    return 0;
}

static int
pin_and_free(size_t bytes, double *seconds, struct status *status)
{
    double each[ROUNDS_OF_LARGE];
    for (int round = -1; round < ROUNDS_OF_LARGE; round++) {
        void *memory;
        const double begin = probe_now();
        cudaError_t error = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);
        if (error == cudaSuccess)
            error = cudaFreeHost(memory);
        each[round < 0 ? 0 : round] = probe_now() - begin;
        if (error != cudaSuccess)
            return device_status(status, error, "cudaHostAlloc");
    }
    *seconds = probe_median(each, ROUNDS_OF_LARGE);
    return 0;
}

static int
from_the_pool_again(const struct device_scope *scope, double *seconds, struct status *status)
{
    struct probe probe = {0};
    int result = -1;
    if (probe_open(&probe, scope, 0, status) < 0)
        goto done;
    for (int round = 0; round < 2; round++) { /* the first time does not count */
        const double begin = probe_now();
        for (int i = 0; i < POOLED; i++) {
            void *memory = NULL;
            if (pool_allocate(scope, probe.stream, SMALLEST, &memory, status) < 0)
                goto done;
            pool_release(probe.stream, memory);
        }
        *seconds = (probe_now() - begin) / POOLED;
    }
    const cudaError_t error = stream_wait(probe.stream);
    result = error == cudaSuccess ? 0 : device_status(status, error, "cudaStreamSynchronize");
done:
    probe_close(&probe);
    return result;
}

int
limits_allocation(int device, size_t most, struct allocation_limits *limits, struct status *status)
{
    struct device_scope scope;
    if (device_enter(&scope, device, status) < 0)
        return -1;

    int result = -1;
    *limits = (struct allocation_limits){0};
    size_t bytes = SMALLEST;
    do {
        struct allocation_seconds *found = &limits->sizes[limits->count];
        *found = (struct allocation_seconds){bytes, 0, -1, -1};
        if (made(&scope, make_by_malloc, give_back_malloc, bytes, &found->malloc, status) < 0 ||
            (bytes <= LARGE && made(&scope, pool_allocate, pool_release, bytes, &found->pool, status) < 0) ||
            (bytes <= PINNED_MOST && pin_and_free(bytes, &found->pinned, status) < 0))
            goto done;
        limits->count++;
        bytes *= STEP;
    } while (bytes <= most && limits->count < LIMITS_SIZES);
    result = from_the_pool_again(&scope, &limits->pool_again, status);
done:
    device_leave(&scope);
    return result;
}
