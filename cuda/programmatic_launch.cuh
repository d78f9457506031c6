/* How a kernel is launched that may begin before the kernel ahead of it in its stream has ended. */
#ifndef VECADD_CUDA_PROGRAMMATIC_LAUNCH_CUH
#define VECADD_CUDA_PROGRAMMATIC_LAUNCH_CUH

#include "cuda/launch.cuh"

/* As launch(), with the attribute; on devices of compute capability 9.0 and up. */
template <typename... Parameters>
inline cudaError_t
launch_programmatic(void (*kernel)(Parameters...), uint64_t threads, unsigned block, cudaStream_t stream,
                    typename exactly<Parameters>::type... arguments)
{
    return launch(kernel, threads, block, launch_target(stream, nullptr, true), arguments...);
}

#endif
