// tuned: what vecadd.add itself launches.
//
//   after    float4
//   changes  any alignment, and the block size by what was measured for the number of bytes
//   expects  never behind another rung; 1 % over float4 from 50 MB on
//   from     our own measurements
//   try      vecadd bench ladder --rungs float4,tuned
#include "kernels.h"
#include "rung.cuh"

static int
tuned_launch(const struct rung_call *call)
{
    if (call->block != 0)
        return cudaErrorInvalidConfiguration; /* chooses its block itself */
    const struct add_call add = {
        call->lane,    call->a, call->b, call->c, call->n, nullptr, static_cast<cudaStream_t>(call->stream),
        call->describe};
    return add_launch(&add);
}

extern "C" const struct rung rung_tuned = {
    .name = "tuned",
    .kind = RUNG_DEVICE,
    .after = "float4",
    .changes = "any alignment, block size by bytes",
    .tested = "double",
    .lanes = ALL_LANES,
    .family = FAMILY_KERNELS,
    .load = "LDG.E.128",
    .headline = true,
    .sum = SUM_WRITTEN,
    .bytes_per_element = 12,
    .bytes_per_load = 16,
    .loads_in_flight = 2,
    .block = 0,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 0,
    .params = {},
    .launch = tuned_launch,
    .run = nullptr,
};
