/* Thread coarsening as founding document 002 writes it: a thread takes `Count` neighbouring components, one after the
 * other.
 */
#ifndef VECADD_CUDA_LAB_LADDER_COARSEN_CUH
#define VECADD_CUDA_LAB_LADDER_COARSEN_CUH

#include "cuda/lab/ladder/rung.cuh"

template <typename Component, unsigned Count>
__global__ static void
coarsened_add(const typename Component::element *a, const typename Component::element *b,
              typename Component::element *c, uint64_t n)
{
    const uint64_t first = thread_number() * Count;
    for (unsigned k = 0; k < Count; ++k)
        if (first + k < n)
            c[first + k] = add_elements<Component>(a[first + k], b[first + k]);
}

template <unsigned Count>
inline int
launch_coarsened(const struct rung_call *call, unsigned usual_block)
{
    return launch_threads<LADDER_COMPONENTS>(
        call, usual_block, [call](auto) { return ceil_div(call->n, Count); },
        [](auto component) { return coarsened_add<decltype(component), Count>; });
}

#endif
