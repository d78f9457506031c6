/* A kernel that does nothing: its time is that of the launch. */
#include "cuda/kernels.h"
#include "cuda/launch.cuh"

__global__ static void
empty()
{
}

cudaError_t
limits_empty_launch(unsigned blocks, unsigned threads, unsigned shared, cudaStream_t stream)
{
    return launch_grid(empty, dim3(blocks), dim3(threads), shared, stream);
}
