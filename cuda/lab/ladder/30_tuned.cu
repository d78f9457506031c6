// tuned: the kernel that vecadd.add launches.
//
//   after    float4
//   changes  any alignment; block, loads and the lines that the L2 gives back come from the table in
//            csrc/gpu/launch_configs.c or from parameters: `loads` 1 plain, 2 evict_last; `demoted` sixtieths of the L2
//            at the end of each input; `warps` a block
//   expects  never behind another rung; from 256 MiB on 1.5 % over float4 by evict_last, on an H200
//   from     our own measurements
//   try      vecadd bench ladder --rungs float4,tuned
#include "cuda/kernels.h"
#include "cuda/lab/ladder/rung.cuh"
#include "gpu/launch_configs.h"

enum { LOADS_BY_TABLE, PLAIN, EVICT_LAST };

static int
tuned_launch(const struct rung_call *call)
{
    if (call->block != 0)
        return cudaErrorInvalidConfiguration; /* chosen by `warps` */
    struct add_call add = {};
    add.component = call->component;
    add.a = call->a;
    add.b = call->b;
    add.c = call->c;
    add.n = call->n;
    add.stream = static_cast<cudaStream_t>(call->stream);
    add.describe = call->describe;
    auto error = static_cast<cudaError_t>(launch_config_choose_on_current_device(&add));
    if (error != cudaSuccess)
        return error;

    const int loads = call->params[0], warps = call->params[1], demoted = call->params[2];
    if (warps != 0)
        add.block = 32 * warps;
    if (loads != LOADS_BY_TABLE) {
        unsigned l2 = 0;
        error = device_attribute(cudaDevAttrL2CacheSize, &l2);
        if (error != cudaSuccess)
            return error;
        add.loads = loads == PLAIN ? LOADS_PLAIN : LOADS_EVICT_LAST;
        add.demoted = l2 / 60 * demoted;
    }
    return add_launch(&add);
}

extern "C" const struct rung rung_tuned = {
    .name = "tuned",
    .kind = RUNG_DEVICE,
    .after = "float4",
    .changes = "any alignment, block and cache policy by bytes",
    .tested = "double",
    .components = ALL_COMPONENTS,
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
    .params = {{"loads", "0 by the table, 1 plain, 2 evict_last", 0, 0, 2},
               {"warps", "warps a block, 0 by the table", 0, 0, 32},
               {"demoted", "sixtieths of the L2 that each input loses evict_last in; loads 0: by the table", 0, 0, 60}},
    .launch = tuned_launch,
    .run = nullptr,
};
