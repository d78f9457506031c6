/* Launches of kernels that may begin before the preceding kernel of their stream has ended. */
#ifndef VECADD_CUDA_PROGRAMMATIC_LAUNCH_CUH
#define VECADD_CUDA_PROGRAMMATIC_LAUNCH_CUH

#include "cuda/launch.cuh"

/* launch() with the programmatic attribute; needs compute capability 9.0 or up. */
template <typename... Parameters>
inline cudaError_t
launch_programmatic(void (*kernel)(Parameters...), uint64_t threads, unsigned block, cudaStream_t stream,
                    typename exactly<Parameters>::type... arguments)
{
    return launch(kernel, threads, block, launch_target(stream, nullptr, true), arguments...);
}

#endif
