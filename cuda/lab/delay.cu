/* Keeps a stream busy for a while: work queued meanwhile runs back to back, so that CUDA events around it do not time
 * the host's launches. */
#include "cuda/kernels.h"
#include "cuda/launch.cuh"
#include "cuda/ptx.cuh"

__global__ static void
wait_cycles(int64_t cycles)
{
    const int64_t begin = cycle_counter();
    while (cycle_counter() - begin < cycles)
        ;
}

cudaError_t
delay_launch(unsigned cycles, cudaStream_t stream)
{
    return launch(wait_cycles, 1, 1, stream, static_cast<int64_t>(cycles));
}
