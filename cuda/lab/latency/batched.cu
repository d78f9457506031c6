// batched: many independent additions in one launch, over a table of them in device memory.
//
//   changes  no addition has a launch of its own. Each has `parts` blocks, as many as the longest addition needs at
//            four components a thread.
//   expects  77 us for 1000 additions of 10 KB that take 3560 us by a launch each on an H200. 20 of them are the
//            table's, which is copied from ordinary memory; the kernel's parameters would have room for 32 KB of it.
//   from     ours
//   try      vecadd bench latency --rungs launch_loop,batched
#include "cuda/lab/rung.cuh"
#include "cuda/lab/latency/latency.h"

enum { COMPONENTS_A_THREAD = 4 };

template <typename Component>
__global__ static void
batched_add(const struct segment *segments, unsigned parts)
{
    using element = typename Component::element;
    const struct segment segment = segments[blockIdx.x / parts];
    const element *const a = static_cast<const element *>(segment.a), *const b =
                                                                          static_cast<const element *>(segment.b);
    element *const c = static_cast<element *>(segment.c);
    const uint64_t first = static_cast<uint64_t>(blockIdx.x % parts) * blockDim.x + threadIdx.x;
    for (uint64_t i = first; i < segment.n; i += static_cast<uint64_t>(parts) * blockDim.x)
        c[i] = add_elements<Component>(a[i], b[i]);
}

int
batched_launch(const struct rung_call *call, const struct segment *segments, unsigned count, uint64_t longest)
{
    const uint64_t parts = ceil_div(longest, BLOCK * COMPONENTS_A_THREAD), blocks = count * parts;
    if (blocks == 0)
        return cudaSuccess;
    if (blocks > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    return with_component_of<LATENCY_COMPONENTS>(call, [&](auto component) -> int {
        return launch_grid(batched_add<decltype(component)>, dim3(static_cast<unsigned>(blocks)), dim3(BLOCK), 0,
                           static_cast<cudaStream_t>(call->stream), segments, static_cast<unsigned>(parts));
    });
}

int
batched_load(const struct rung_call *call)
{
    return with_component_of<LATENCY_COMPONENTS>(
        call, [&](auto component) -> int { return load(batched_add<decltype(component)>); });
}
