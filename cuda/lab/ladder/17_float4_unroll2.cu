// float4_unroll2: two 16-byte vectors of each input in flight.
//
//   after    float4_arg
//   changes  wide loads first, then modest unrolling
//   expects  128 KiB of loads in flight an SM, where 19 fill an H200, for 16 registers more: nothing over float4 at
//   full
//            size
//   from     founding document 003, in words
//   try      vecadd bench ladder --rungs float4,float4_unroll2
#include "cuda/lab/ladder/unrolled.cuh"

enum { BLOCK = 256 };

static int
float4_unroll2_launch(const struct rung_call *call)
{
    return launch_unrolled<16, 2>(call, BLOCK);
}

extern "C" const struct rung rung_float4_unroll2 = {
    .name = "float4_unroll2",
    .kind = RUNG_DEVICE,
    .after = "float4_arg",
    .changes = "two 16-byte vectors of each input in flight",
    .tested = "double",
    .components = LADDER_COMPONENTS,
    .family = FAMILY_KERNELS,
    .load = "LDG.E.128",
    .headline = false,
    .sum = SUM_WRITTEN,
    .bytes_per_element = 12,
    .bytes_per_load = 16,
    .loads_in_flight = 4,
    .block = BLOCK,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 16,
    .params = {},
    .launch = float4_unroll2_launch,
    .run = nullptr,
};
