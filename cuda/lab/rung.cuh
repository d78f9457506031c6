/* What the device rungs share: components and launches. A rung's own part of a file, from its `// name:` to the end of
 * its row, has only its kernel and its row. */
#ifndef VECADD_CUDA_LAB_RUNG_CUH
#define VECADD_CUDA_LAB_RUNG_CUH

#include "cuda/components.cuh"
#include "cuda/launch.cuh"
#include "lab/base/rung.h"

constexpr unsigned BLOCK = RUNG_BLOCK, WARP = 32; /* threads: of a block by default, of a warp */

enum {
    ALL_COMPONENTS = (1 << COMPONENT_COUNT) - 1,
    /* One component of each width, for rungs that are about addresses. */
    WIDTH_COMPONENTS = 1 << COMPONENT_F32 | 1 << COMPONENT_F64 | 1 << COMPONENT_F16 | 1 << COMPONENT_I8,
    /* Also one of each kind of arithmetic: results with these components apply to the others. */
    LADDER_COMPONENTS = WIDTH_COMPONENTS | 1 << COMPONENT_BF16 | 1 << COMPONENT_I32,
};

/* Founding document 004 adds to the contents of its result, `r += a + b`, in some kernels and not in others. Where a
 * rung has this parameter, one thing can be changed at a time. */
#define ACCUMULATE_PARAM(usual)                                                                                        \
    {                                                                                                                  \
        "accumulate", "1: adds a + b to the contents of c, 16 bytes an element; 0: writes it, 12", 0, usual, 1         \
    }

/* c[i] = a[i] + b[i], or c[i] += a[i] + b[i]. */
template <typename Component, bool Accumulate>
__device__ inline void
add_at(const typename Component::element *a, const typename Component::element *b, typename Component::element *c,
       uint64_t i)
{
    const typename Component::element sum = add_elements<Component>(a[i], b[i]);
    if constexpr (Accumulate)
        c[i] = add_elements<Component>(c[i], sum);
    else
        c[i] = sum;
}

/* visit(component) with the call's component, one of `Components`: no kernel is compiled for the others. */
template <int Components, typename Visit>
inline int
with_component_of(const struct rung_call *call, Visit visit)
{
    return with_component(call->component, [&](auto component) -> int {
        if constexpr ((Components >> decltype(component)::number & 1) != 0)
            return visit(component);
        else
            return cudaErrorInvalidValue;
    });
}

inline unsigned
block_of(const struct rung_call *call)
{
    return call->block ? call->block : BLOCK;
}

inline launch_target
target_of(const struct rung_call *call)
{
    return launch_target(static_cast<cudaStream_t>(call->stream), call->describe);
}

inline uint64_t
ceil_div(uint64_t n, uint64_t by)
{
    return (n + by - 1) / by;
}

/* A thread for each whole vector of `size` components, and one for each component after the last of them. */
inline uint64_t
threads_for(uint64_t n, uint64_t size)
{
    return n / size + n % size;
}

/* Queues the kernel that kernel_for(component) gives, a function of (a, b, c, n, parameters...). Queues nothing for n =
 * 0. */
template <int Components, typename KernelFor, typename... Parameters>
inline int
launch_blocks(const struct rung_call *call, dim3 grid, dim3 block, KernelFor kernel_for, Parameters... parameters)
{
    if (call->n == 0)
        return cudaSuccess;
    return with_component_of<Components>(call, [&](auto component) -> int {
        using element = typename decltype(component)::element;
        return launch_grid(kernel_for(component), grid, block, 0, target_of(call),
                           static_cast<const element *>(call->a), static_cast<const element *>(call->b),
                           static_cast<element *>(call->c), call->n, parameters...);
    });
}

/* Queues the kernel on threads(component) threads, in blocks of the call's size or of the default. */
template <int Components, typename Threads, typename KernelFor, typename... Parameters>
inline int
launch_threads(const struct rung_call *call, Threads threads, KernelFor kernel_for, Parameters... parameters)
{
    return with_component_of<Components>(call, [&](auto component) -> int {
        using element = typename decltype(component)::element;
        return launch(kernel_for(component), threads(component), block_of(call), target_of(call),
                      static_cast<const element *>(call->a), static_cast<const element *>(call->b),
                      static_cast<element *>(call->c), call->n, parameters...);
    });
}

/* A thread for each component. */
template <int Components, typename KernelFor, typename... Parameters>
inline int
launch_each(const struct rung_call *call, KernelFor kernel_for, Parameters... parameters)
{
    return launch_threads<Components>(
        call, [call](auto) { return call->n; }, kernel_for, parameters...);
}

/* A thread for each vector of `Bytes` bytes, and for each component after the last. */
template <int Components, unsigned Bytes, typename KernelFor>
inline int
launch_vectors(const struct rung_call *call, KernelFor kernel_for)
{
    const auto threads = [call](auto component) {
        return threads_for(call->n, vector_of<decltype(component), Bytes>::size);
    };
    return launch_threads<Components>(call, threads, kernel_for);
}

inline cudaError_t
device_attribute(cudaDeviceAttr attribute, unsigned *value)
{
    int device = 0, found = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&found, attribute, device);
    *value = static_cast<unsigned>(found);
    return error;
}

/* How many multiprocessors the current device has. */
inline cudaError_t
multiprocessors(unsigned *count)
{
    return device_attribute(cudaDevAttrMultiProcessorCount, count);
}

/* As many threads as fit on the current device at once, or n where that is less. */
inline cudaError_t
resident_threads(uint64_t n, uint64_t *threads)
{
    unsigned count, most = 0;
    cudaError_t error = multiprocessors(&count);
    if (error == cudaSuccess)
        error = device_attribute(cudaDevAttrMaxThreadsPerMultiProcessor, &most);
    const uint64_t resident = static_cast<uint64_t>(count) * most;
    *threads = n < resident ? n : resident;
    return error;
}

#endif
