// unroll2: a grid-stride loop that loads two components of each input before it adds.
//
//   after    coarsen4
//   changes  a thread's components are a grid apart, so that bursts stay whole, and both are on their way before either
//            is used
//   expects  8 bytes in flight a thread become 16: at 2048 threads 32 KiB an SM against naive's 16. An H200 reaches
//            95 % of its rate with 28.
//   from     founding document 003, in words
//   try      vecadd bench ladder --rungs naive,unroll2,unroll4
#include "cuda/lab/ladder/unrolled.cuh"

enum { BLOCK = 256 };

static int
unroll2_launch(const struct rung_call *call)
{
    return launch_unrolled<0, 2>(call, BLOCK);
}

extern "C" const struct rung rung_unroll2 = {
    .name = "unroll2",
    .kind = RUNG_DEVICE,
    .after = "coarsen4",
    .changes = "two elements of each input in flight, a grid apart",
    .tested = "double",
    .components = LADDER_COMPONENTS,
    .family = FAMILY_KERNELS,
    .load = "LDG.E",
    .headline = false,
    .sum = SUM_WRITTEN,
    .bytes_per_element = 12,
    .bytes_per_load = 4,
    .loads_in_flight = 4,
    .block = BLOCK,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 0,
    .params = {},
    .launch = unroll2_launch,
    .run = nullptr,
};
