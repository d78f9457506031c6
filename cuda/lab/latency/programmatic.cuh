/* Programmatic dependent launch: a kernel that may begin before the kernel ahead of it in its stream has ended. Its
 * threads' first act is wait_for_prerequisites (cuda/ptx.cuh), before they load, store or leave. */
#ifndef VECADD_CUDA_LAB_LATENCY_PROGRAMMATIC_CUH
#define VECADD_CUDA_LAB_LATENCY_PROGRAMMATIC_CUH

#include "cuda/lab/rung.cuh"
#include "cuda/lab/latency/latency.h"
#include "cuda/programmatic_launch.cuh"

enum { SMALL_BLOCK = 256 };

/* One component a thread. */
template <typename KernelFor>
inline int
launch_programmatic_add(const struct rung_call *call, KernelFor kernel_for)
{
    return with_component_of<LATENCY_COMPONENTS>(call, [&](auto component) -> int {
        using element = typename decltype(component)::element;
        return launch_programmatic(kernel_for(component), call->n, SMALL_BLOCK, static_cast<cudaStream_t>(call->stream),
                                   static_cast<const element *>(call->a), static_cast<const element *>(call->b),
                                   static_cast<element *>(call->c), call->n);
    });
}

template <typename KernelFor>
inline int
load_add(const struct rung_call *call, KernelFor kernel_for)
{
    return with_component_of<LATENCY_COMPONENTS>(call,
                                                 [&](auto component) -> int { return load(kernel_for(component)); });
}

#endif
