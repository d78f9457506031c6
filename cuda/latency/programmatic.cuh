/* Programmatic dependent launch: a kernel that may begin before the kernel ahead of it in its stream has ended. Its
 * threads' first act is wait_for_prerequisites (cuda/ptx.cuh), before they load, store or leave. */
#ifndef VECADD_PROGRAMMATIC_CUH
#define VECADD_PROGRAMMATIC_CUH

#include "ladder/rung.cuh"
#include "latency/latency.h"

enum { SMALL_BLOCK = 256 };

/* As launch(), with the attribute; on devices of compute capability 9.0 and up. */
template <typename... Parameters>
inline cudaError_t
launch_programmatic(void (*kernel)(Parameters...), uint64_t threads, unsigned block, cudaStream_t stream,
                    typename exactly<Parameters>::type... arguments)
{
    const uint64_t blocks = ceil_div(threads, block);
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

/* One lane a thread. */
template <typename KernelFor>
inline int
launch_programmatic_add(const struct rung_call *call, KernelFor kernel_for)
{
    return with_lane_of<LATENCY_LANES>(call, [&](auto lane) -> int {
        using element = typename decltype(lane)::element;
        return launch_programmatic(kernel_for(lane), call->n, SMALL_BLOCK, static_cast<cudaStream_t>(call->stream),
                                   static_cast<const element *>(call->a), static_cast<const element *>(call->b),
                                   static_cast<element *>(call->c), call->n);
    });
}

template <typename KernelFor>
inline int
load_add(const struct rung_call *call, KernelFor kernel_for)
{
    return with_lane_of<LATENCY_LANES>(call, [&](auto lane) -> int { return load(kernel_for(lane)); });
}

#endif
