// float2_unroll2: two 8-byte vectors of each input in flight.
//
//   after    float2
//   changes  a grid-stride loop over vectors, unrolled by two
//   expects  64 KiB in flight an SM, as float4 has
//   from     founding document 003
//   try      vecadd bench ladder --rungs float2,float2_unroll2,float4
#include "cuda/lab/ladder/unrolled.cuh"

enum { BLOCK = 256 };

static int
float2_unroll2_launch(const struct rung_call *call)
{
    return launch_unrolled<8, 2>(call, BLOCK);
}

extern "C" const struct rung rung_float2_unroll2 = {
    .name = "float2_unroll2",
    .kind = RUNG_DEVICE,
    .after = "float2",
    .changes = "two 8-byte vectors of each input in flight",
    .tested = "double",
    .components = LADDER_COMPONENTS,
    .family = FAMILY_KERNELS,
    .load = "LDG.E.64",
    .headline = false,
    .sum = SUM_WRITTEN,
    .bytes_per_element = 12,
    .bytes_per_load = 8,
    .loads_in_flight = 4,
    .block = BLOCK,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 8,
    .params = {},
    .launch = float2_unroll2_launch,
    .run = nullptr,
};
