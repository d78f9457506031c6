// unroll4: four components of each input in flight.
//
//   after    unroll2
//   changes  twice as many loads before the first use
//   expects  64 KiB in flight an SM: more than the memory can serve. Nothing over unroll2 but fewer turns of the loop.
//   from     founding document 003, in words
//   try      vecadd bench ladder --rungs unroll2,unroll4,float4
#include "cuda/lab/ladder/unrolled.cuh"

enum { BLOCK = 256 };

static int
unroll4_launch(const struct rung_call *call)
{
    return launch_unrolled<0, 4>(call, BLOCK);
}

extern "C" const struct rung rung_unroll4 = {
    .name = "unroll4",
    .kind = RUNG_DEVICE,
    .after = "unroll2",
    .changes = "four elements of each input in flight, a grid apart",
    .tested = "double",
    .components = LADDER_COMPONENTS,
    .family = FAMILY_KERNELS,
    .load = "LDG.E",
    .headline = false,
    .sum = SUM_WRITTEN,
    .bytes_per_element = 12,
    .bytes_per_load = 4,
    .loads_in_flight = 8,
    .block = BLOCK,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 0,
    .params = {},
    .launch = unroll4_launch,
    .run = nullptr,
};
