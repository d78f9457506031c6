/* Several elements a thread, by scalar accesses. */
#include "cuda/lab/rung.cuh"
#include "cuda/lab/unrolled.cuh"

/* Thread coarsening as founding document 002 writes it: a thread takes `Count` neighbouring components, one after the
 * other. */
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
launch_coarsened(const struct rung_call *call)
{
    return launch_threads<LADDER_COMPONENTS>(
        call, [call](auto) { return ceil_div(call->n, Count); },
        [](auto component) { return coarsened_add<decltype(component), Count>; });
}

// coarsen2: two neighbouring components a thread, by scalar accesses.
//
//   after    restrict
//   changes  thread t takes components 2t to 2t + 1: fewer threads, and a stride between the addresses of a warp
//   expects  no gain, or a loss: a warp's loads are 8 bytes apart, so each takes 8 sectors for the 4 that it uses at
//            once, and the second waits for the first's store. The document: 21 % slower on a T4, 2 % faster on an
//            A100.
//   from     founding document 002
//   try      vecadd bench ladder --rungs naive,coarsen2,coarsen4,float4

extern "C" const struct rung rung_coarsen2 = {
    .name = "coarsen2",
    .after = "restrict",
    .changes = "two neighbouring elements a thread, scalar accesses",
    .components = LADDER_COMPONENTS,
    .launch = launch_coarsened<2>,
};

// coarsen4: four neighbouring components a thread, by scalar accesses.
//
//   after    coarsen2
//   changes  thread t takes components 4t to 4t + 3: fewer threads, and a stride between the addresses of a warp
//   expects  worse than coarsen2: a warp's load takes 16 sectors for the 4 that it uses at once. 15 % slower than
//            naive on the document's A100.
//   from     founding document 002
//   try      vecadd bench ladder --rungs naive,coarsen2,coarsen4,float4

extern "C" const struct rung rung_coarsen4 = {
    .name = "coarsen4",
    .after = "coarsen2",
    .changes = "four neighbouring elements a thread, scalar accesses",
    .components = LADDER_COMPONENTS,
    .launch = launch_coarsened<4>,
};

// unroll2: a grid-stride loop that loads two components of each input before it adds.
//
//   after    coarsen4
//   changes  a thread's components are a grid apart, so that bursts stay whole, and both are on their way before either
//            is used
//   expects  8 bytes in flight a thread become 16: at 2048 threads 32 KiB an SM against naive's 16. An H200 reaches
//            95 % of its rate with 28.
//   from     founding document 003, in words
//   try      vecadd bench ladder --rungs naive,unroll2,unroll4

extern "C" const struct rung rung_unroll2 = {
    .name = "unroll2",
    .after = "coarsen4",
    .changes = "two elements of each input in flight, a grid apart",
    .components = LADDER_COMPONENTS,
    .loads_in_flight = 4,
    .launch = launch_unrolled<0, 2>,
};

// unroll4: four components of each input in flight.
//
//   after    unroll2
//   changes  twice as many loads before the first use
//   expects  64 KiB in flight an SM: more than the memory can serve. Nothing over unroll2 but fewer turns of the loop.
//   from     founding document 003, in words
//   try      vecadd bench ladder --rungs unroll2,unroll4,float4

extern "C" const struct rung rung_unroll4 = {
    .name = "unroll4",
    .after = "unroll2",
    .changes = "four elements of each input in flight, a grid apart",
    .components = LADDER_COMPONENTS,
    .loads_in_flight = 8,
    .launch = launch_unrolled<0, 4>,
};
