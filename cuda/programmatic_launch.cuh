/* How a kernel is launched that may begin before the kernel ahead of it in its stream has ended. */
#ifndef VECADD_PROGRAMMATIC_LAUNCH_CUH
#define VECADD_PROGRAMMATIC_LAUNCH_CUH

#include "launch.cuh"

/* As launch(), with the attribute; on devices of compute capability 9.0 and up. */
template <typename... Parameters>
inline cudaError_t
launch_programmatic(void (*kernel)(Parameters...), uint64_t threads, unsigned block, cudaStream_t stream,
                    typename exactly<Parameters>::type... arguments)
{
    const uint64_t blocks = (threads + block - 1) / block;
    if (blocks == 0)
        return cudaSuccess;
    if (blocks > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    const dim3 grid(static_cast<unsigned>(blocks));
#if VECADD_DOUBLE
    return launch_on_cpu(launch_order::programmatic, kernel, grid, dim3(block), 0, stream, arguments...);
#else
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = dim3(block);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    void *pointers[] = {&arguments...};
    return cudaLaunchKernelExC(&config, reinterpret_cast<const void *>(kernel), pointers);
#endif
}

#endif
