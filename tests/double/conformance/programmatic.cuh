/* Tests the order of an addition after another kernel. The kernel ahead lets others begin at once, is busy for a while,
 * and then writes a and b and reads c: every order in which the next addition could touch the three shows. */
#ifndef VECADD_CONFORMANCE_PROGRAMMATIC_CUH
#define VECADD_CONFORMANCE_PROGRAMMATIC_CUH

#include <initializer_list>

#include "../../c/tests.h"
#include "cuda/kernels.h"
#include "cuda/lab/latency.h"
#include "cuda/lab/ptx.cuh"
#include "cuda/lab/rung.cuh"
#include "cuda/launch.cuh"

/* Few enough blocks that the next kernel finds room; 2^20 cycles are half a millisecond. */
enum { N = 1000, ROUNDS = 32, BUSY_CYCLES = 1 << 20 };

__global__ static void
write_late(float *a, float *b, const float *c, float *seen, unsigned n, float value)
{
    trigger_dependents();
    wait_for_prerequisites();
    const int64_t begin = cycle_counter();
    while (cycle_counter() - begin < BUSY_CYCLES) {
    }
    const uint64_t i = thread_number();
    if (i < n) {
        a[i] = value;
        b[i] = 2 * value;
        seen[i] = c[i];
    }
}

struct arrays {
    float *a, *b, *c, *seen;
    cudaStream_t stream;
};

/* Queues the next kernel, the one that is tested. */
typedef int queue_next(const struct arrays *arrays);

/* An older device has no such launches: there is nothing to check. */
static inline bool
supported()
{
    int major = 0;
    CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess);
    return major >= 9;
}

static inline struct arrays
arrays_open()
{
    struct arrays arrays;
    float **const each[] = {&arrays.a, &arrays.b, &arrays.c, &arrays.seen};
    for (float **array : each) {
        CHECK(cudaMalloc(reinterpret_cast<void **>(array), N * sizeof(float)) == cudaSuccess);
        CHECK(cudaMemset(*array, 0, N * sizeof(float)) == cudaSuccess);
    }
    CHECK(cudaStreamCreateWithFlags(&arrays.stream, cudaStreamNonBlocking) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);

    /* No kernel may be loaded in a capture, nor after another one that it would have to wait for. */
    struct rung_call call = {};
    call.component = COMPONENT_F32;
    for (const small_add *add : {&waiting_add, &triggering_add})
        CHECK(add->load(&call) == cudaSuccess);
    CHECK(load(write_late) == cudaSuccess);
    return arrays;
}

static inline void
arrays_close(const struct arrays *arrays)
{
    CHECK(cudaStreamDestroy(arrays->stream) == cudaSuccess);
    for (float *array : {arrays->a, arrays->b, arrays->c, arrays->seen})
        CHECK(cudaFree(array) == cudaSuccess);
}

static inline int
ahead(const struct arrays *x, float value)
{
    return launch(write_late, N, BLOCK, x->stream, x->a, x->b, x->c, x->seen, N, value);
}

/* How many of the array's elements are not `value`. */
static inline int
others(const float *device, float value)
{
    static float host[N];
    CHECK(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost) == cudaSuccess);
    int count = 0;
    for (float each : host)
        count += each != value;
    return count;
}

/* In how many rounds the next kernel added other values than those that were written ahead of it, or was there before
 * c had been read. */
static inline int
rounds_wrong(const struct arrays *x, queue_next *queue)
{
    int wrong = 0;
    for (int round = 1; round <= ROUNDS; round++) {
        const float value = static_cast<float>(round);
        CHECK(ahead(x, value) == cudaSuccess);
        CHECK(queue(x) == cudaSuccess);
        CHECK(cudaStreamSynchronize(x->stream) == cudaSuccess);
        wrong += others(x->c, 3 * value) || others(x->seen, 3 * (value - 1));
    }
    return wrong;
}

#endif
