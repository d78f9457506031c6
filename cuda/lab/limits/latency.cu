/* Latency probes: one thread follows a chain of pointers; also the rate of atomic additions to one address. */
#include "cuda/kernels.h"
#include "cuda/launch.cuh"
#include "cuda/ptx.cuh"

using link = const void *;

/* A step is one load: each link holds the address of the next. */
template <bool PastL1>
__global__ static void
chase(const void *start, unsigned steps, link *sink)
{
    link at = start;
    for (unsigned step = 0; step < steps; ++step)
        if constexpr (PastL1)
            at = load_past_l1(static_cast<const link *>(at));
        else
            at = *static_cast<const link *>(at);
    *sink = at;
}

__global__ static void
chain(char *memory, unsigned links, unsigned distance)
{
    const uint64_t i = thread_number();
    if (i < links)
        *reinterpret_cast<link *>(memory + i * distance) = memory + (i + 1) % links * distance;
}

/* A block goes through two arrays side by side, as an addition does: each round waits for the one before. The words'
 * values do not matter, but the next address depends on them. */
__global__ static void
stream(const unsigned *a, const unsigned *b, unsigned rounds, unsigned *sink)
{
    uint64_t at = thread_number();
    for (unsigned round = 0; round < rounds; ++round) {
        const unsigned found = a[at] ^ b[at];
        at += blockDim.x + (found == 0x5bd1e995u);
    }
    *sink = static_cast<unsigned>(at);
}

__global__ static void
add_to_one(float *sink, unsigned times)
{
    for (unsigned time = 0; time < times; ++time)
        atomicAdd(sink, 0.0f);
}

cudaError_t
limits_chain_launch(void *memory, unsigned links, unsigned distance, cudaStream_t stream)
{
    return launch(chain, links, 256, stream, static_cast<char *>(memory), links, distance);
}

cudaError_t
limits_chase_launch(const void *start, unsigned steps, int past_l1, void *sink, cudaStream_t stream)
{
    return launch(past_l1 ? chase<true> : chase<false>, 1, 1, stream, start, steps, static_cast<link *>(sink));
}

cudaError_t
limits_stream_launch(const void *a, const void *b, unsigned rounds, void *sink, cudaStream_t into)
{
    return launch(stream, LIMITS_STREAM_THREADS, LIMITS_STREAM_THREADS, into, static_cast<const unsigned *>(a),
                  static_cast<const unsigned *>(b), rounds, static_cast<unsigned *>(sink));
}

cudaError_t
limits_atomic_launch(void *sink, unsigned times, cudaStream_t stream)
{
    return launch(add_to_one, LIMITS_ATOMIC_THREADS, LIMITS_ATOMIC_THREADS, stream, static_cast<float *>(sink), times);
}
