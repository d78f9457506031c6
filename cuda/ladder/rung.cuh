/* What the device rungs share: the launch. A rung's file holds its kernel and its row, nothing else. */
#ifndef VECADD_RUNG_CUH
#define VECADD_RUNG_CUH

#include "lanes.cuh"
#include "launch.cuh"
#include "rung.h"

enum { ALL_LANES = (1 << LANE_COUNT) - 1 };

/* Threads that a kernel needs for n lanes, `vector` lanes making 16 bytes. */
inline uint64_t
one_lane_each(uint64_t n, uint64_t)
{
    return n;
}

inline uint64_t
one_vector_each(uint64_t n, uint64_t vector)
{
    return n / vector + n % vector;
}

/* Queues the kernel that kernel_for(lane) gives, a function of (a, b, c, n). */
template <typename KernelFor>
inline int
launch_rung(const struct rung_call *call, unsigned default_block, uint64_t (*threads)(uint64_t, uint64_t),
            KernelFor kernel_for)
{
    return with_lane(call->lane, [&](auto lane) -> int {
        using element = typename decltype(lane)::element;
        return launch(kernel_for(lane), threads(call->n, 16 / sizeof(element)),
                      call->block ? call->block : default_block, static_cast<cudaStream_t>(call->stream),
                      static_cast<const element *>(call->a), static_cast<const element *>(call->b),
                      static_cast<element *>(call->c), call->n);
    });
}

#endif
