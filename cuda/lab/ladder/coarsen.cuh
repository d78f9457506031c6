/* Thread coarsening as founding document 002 writes it: a thread takes `Count` neighbouring lanes, one after the other.
 */
#ifndef VECADD_CUDA_LAB_LADDER_COARSEN_CUH
#define VECADD_CUDA_LAB_LADDER_COARSEN_CUH

#include "cuda/lab/ladder/rung.cuh"

template <typename Lane, unsigned Count>
__global__ static void
coarsened_add(const typename Lane::element *a, const typename Lane::element *b, typename Lane::element *c, uint64_t n)
{
    const uint64_t first = thread_number() * Count;
    for (unsigned k = 0; k < Count; ++k)
        if (first + k < n)
            c[first + k] = add_elements<Lane>(a[first + k], b[first + k]);
}

template <unsigned Count>
inline int
launch_coarsened(const struct rung_call *call, unsigned usual_block)
{
    return launch_threads<LADDER_LANES>(
        call, usual_block, [call](auto) { return ceil_div(call->n, Count); },
        [](auto lane) { return coarsened_add<decltype(lane), Count>; });
}

#endif
