// tuned: what vecadd.add itself launches.
//
//   after    float4
//   changes  any alignment, and the block size by what was measured for the number of bytes
//   expects  never behind another rung; 1 % over float4 from 50 MB on
//   from     our own measurements
//   try      vecadd bench --rungs float4,tuned
#include "kernels.h"
#include "rung.cuh"

static int
tuned_launch(const struct rung_call *call)
{
    if (call->block != 0)
        return cudaErrorInvalidConfiguration; /* chooses its block itself */
    const struct add_call add = {
        call->lane, call->a, call->b, call->c, call->n, nullptr, static_cast<cudaStream_t>(call->stream)};
    return add_launch(&add);
}

extern "C" const struct rung rung_tuned = {
    .name = "tuned",
    .kind = RUNG_DEVICE,
    .changes = "any alignment, block size by bytes",
    .tested = "double",
    .bytes_per_load = 16,
    .loads_in_flight = 2,
    .block = 0,
    .alignment = 0,
    .lanes = ALL_LANES,
    .launch = tuned_launch,
    .run = nullptr,
};
