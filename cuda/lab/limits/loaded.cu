/* Reads memory with a given number of bytes in flight on each multiprocessor: the rate and the latency of DRAM under
 * load. */
#include "cuda/lab/limits/probe_launches.h"
#include "cuda/launch.cuh"

/* A thread issues Loads independent loads, waits for all of them, and only then goes on: so many are in flight always.
 * The memory is zero, but the compiler cannot know that: the next addresses depend on what was found. */
template <unsigned Loads>
__global__ static void
__launch_bounds__(LIMITS_LOADED_THREADS) loaded(const uint4 *memory, unsigned rounds, uint64_t *sink)
{
    const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
    uint64_t at = thread_number();
    for (unsigned round = 0; round < rounds; ++round) {
        unsigned any = 0;
        uint4 found[Loads];
        for (unsigned k = 0; k < Loads; ++k)
            found[k] = memory[at + k * stride];
        for (unsigned k = 0; k < Loads; ++k)
            any |= found[k].x | found[k].y | found[k].z | found[k].w;
        at += Loads * stride + (any == 0x5bd1e995u);
    }
    if (at == UINT64_MAX)
        *sink = at;
}

cudaError_t
limits_loaded_launch(const void *memory, const struct limits_load *load, uint64_t *sink, cudaStream_t stream)
{
    const auto kernel = load->loads == 1 ? loaded<1> : load->loads == 2 ? loaded<2> : loaded<4>;
    return launch_grid(kernel, dim3(load->blocks), dim3(load->threads), 0, stream, static_cast<const uint4 *>(memory),
                       load->rounds, sink);
}
