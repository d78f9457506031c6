/* What memory costs where it is made, used once and given back: the device's by cudaMalloc, which maps it, and from a
 * stream-ordered pool, which keeps it; the host's page-locked. */
#include <cuda_runtime_api.h>

#include "gpu/device.h"
#include "lab/base/probes.h"
#include "lab/limits/probe.h"

enum {
    SMALLEST = 2 << 10, /* so that one size is 2 MiB, from which on cudaMalloc maps memory for each array */
    STEP = 4,
    ARRAYS = 3, /* held at once, as an addition holds them */
    ROUNDS = 9,
    ROUNDS_OF_LARGE = 3,  /* what is freed slows the device for 2.7 ms a GiB */
    LARGE = 64 << 20,     /* also the largest that the pool is asked for, which keeps it */
    PINNED_MAX = 4 << 20, /* 2 ms */
    POOLED = 32,
    COPIED = 64 << 20, /* of larger arrays a part is used */
};

typedef int make(const struct device_scope *scope, cudaStream_t stream, size_t bytes, void **memory,
                 struct status *status);
typedef void give_back(cudaStream_t stream, void *memory);

struct way {
    make *make;
    give_back *give_back;
    bool new_stream; /* each time: a pool knows which stream had its memory before */
};

struct allocation {
    const struct device_scope *scope;
    cudaStream_t stream;
    void *host; /* page-locked, COPIED bytes, or as many as there are of an array */
};

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
    device_ignore(cudaFree(memory));
}

/* What is done with arrays, up to COPIED bytes of each: what an addition does, waited for. */
static int
use(void *const memory[ARRAYS], void *host, size_t bytes, cudaStream_t stream, struct status *status)
{
    const size_t copied = bytes < COPIED ? bytes : COPIED;
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < ARRAYS - 1 && error == cudaSuccess; i++)
        error = cudaMemcpyAsync(memory[i], host, copied, cudaMemcpyHostToDevice, stream);
    if (error == cudaSuccess)
        error = cudaMemsetAsync(memory[ARRAYS - 1], 0, copied, stream);
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(host, memory[ARRAYS - 1], copied, cudaMemcpyDeviceToHost, stream);
    const cudaError_t waited = stream_wait(stream);
    if (error == cudaSuccess)
        error = waited;
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaMemcpyAsync");
}

/* Seconds of making all arrays and of giving them back, and by how much longer their first use takes than the next: the
 * first copies into new memory are slower. */
static int
made_once(const struct device_scope *scope, cudaStream_t stream, const struct way *way, void *host, size_t bytes,
          double *seconds, struct status *status)
{
    void *memory[ARRAYS] = {NULL};
    int result = 0;
    probe_disturb(); /* as additions are, among other work */
    const double begin = now_seconds();
    for (int i = 0; i < ARRAYS && result == 0; i++)
        result = way->make(scope, stream, bytes, &memory[i], status);
    if (result == 0)
        result = use(memory, host, bytes, stream, status);
    const double used = now_seconds();
    if (result == 0)
        result = use(memory, host, bytes, stream, status);
    const double used_again = now_seconds();
    for (int i = 0; i < ARRAYS; i++)
        if (memory[i])
            way->give_back(stream, memory[i]);
    *seconds = used - begin - (used_again - used) + (now_seconds() - used_again);
    return result;
}

/* The median of the rounds after a first one. */
static int
made(const struct allocation *probe, const struct way *way, size_t bytes, double *seconds, struct status *status)
{
    double each[ROUNDS];
    const int rounds = bytes > LARGE ? ROUNDS_OF_LARGE : ROUNDS;
    for (int round = -1; round < rounds; round++) {
        cudaStream_t stream = probe->stream;
        if (way->new_stream) {
            const cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
            if (error != cudaSuccess)
                return device_status(status, error, "cudaStreamCreateWithFlags");
        }
        const int result =
            made_once(probe->scope, stream, way, probe->host, bytes, &each[round < 0 ? 0 : round], status);
        if (way->new_stream)
            device_ignore(cudaStreamDestroy(stream));
        if (result < 0)
            return -1;
    }
    *seconds = probe_median(each, rounds);
    if (*seconds < 0)
        *seconds = 0;
    return 0;
}

static int
pin_and_free(size_t bytes, double *seconds, struct status *status)
{
    double each[ROUNDS_OF_LARGE];
    for (int round = -1; round < ROUNDS_OF_LARGE; round++) {
        void *memory;
        const double begin = now_seconds();
        cudaError_t error = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);
        if (error == cudaSuccess)
            error = cudaFreeHost(memory);
        each[round < 0 ? 0 : round] = now_seconds() - begin;
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
        const double begin = now_seconds();
        for (int i = 0; i < POOLED; i++) {
            void *memory = NULL;
            if (pool_allocate(scope, probe.stream, SMALLEST, &memory, status) < 0)
                goto done;
            pool_release(probe.stream, memory);
        }
        *seconds = (now_seconds() - begin) / POOLED;
    }
    const cudaError_t error = stream_wait(probe.stream);
    result = error == cudaSuccess ? 0 : device_status(status, error, "cudaStreamSynchronize");
done:
    probe_close(&probe);
    return result;
}

static int
allocation_open(struct allocation *probe, size_t most, struct status *status)
{
    cudaError_t error = cudaStreamCreateWithFlags(&probe->stream, cudaStreamNonBlocking);
    if (error != cudaSuccess) {
        probe->stream = NULL;
        return device_status(status, error, "cudaStreamCreateWithFlags");
    }
    most = most < SMALLEST ? SMALLEST : most;
    error = cudaHostAlloc(&probe->host, most < COPIED ? most : COPIED, cudaHostAllocDefault);
    if (error == cudaSuccess)
        return 0;
    probe->host = NULL;
    return device_status(status, error, "cudaHostAlloc");
}

static void
allocation_close(const struct allocation *probe)
{
    if (probe->host)
        device_ignore(cudaFreeHost(probe->host));
    if (probe->stream)
        device_ignore(cudaStreamDestroy(probe->stream));
}

int
limits_allocation(int device, size_t most, struct allocation_limits *limits, struct status *status)
{
    static const struct way by_malloc = {make_by_malloc, give_back_malloc, false},
                            by_pool = {pool_allocate, pool_release, true};
    struct device_scope scope;
    if (device_enter_relaxed(&scope, device, status) < 0)
        return -1;

    int result = -1;
    struct allocation probe = {.scope = &scope};
    *limits = (struct allocation_limits){0};
    if (allocation_open(&probe, most, status) < 0)
        goto done;
    size_t bytes = SMALLEST;
    do {
        struct allocation_seconds *found = &limits->sizes[limits->count];
        *found = (struct allocation_seconds){bytes, 0, -1, -1};
        if (made(&probe, &by_malloc, bytes, &found->malloc, status) < 0 ||
            (bytes <= LARGE && made(&probe, &by_pool, bytes, &found->pool, status) < 0) ||
            (bytes <= PINNED_MAX && pin_and_free(bytes, &found->pinned, status) < 0))
            goto done;
        limits->count++;
        bytes *= STEP;
    } while (bytes <= most && limits->count < LIMITS_SIZES);
    result = from_the_pool_again(&scope, &limits->pool_again, status);
done:
    allocation_close(&probe);
    device_leave(&scope);
    return result;
}
