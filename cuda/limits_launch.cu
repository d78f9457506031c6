/* A kernel that does nothing: what is left of its time is the launch. */
#include "kernels.h"
#include "launch.cuh"

__global__ static void
empty()
{
}

cudaError_t
limits_empty_launch(unsigned blocks, unsigned threads, cudaStream_t stream)
{
    return launch(empty, static_cast<uint64_t>(blocks) * threads, threads, stream);
}
