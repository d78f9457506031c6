// coarsen2: two neighbouring components a thread, by scalar accesses.
//
//   after    restrict
//   changes  thread t takes components 2t to 2t + 1: fewer threads, and a stride between the addresses of a warp
//   expects  no gain, or a loss: a warp's loads are 8 bytes apart, so each takes 8 sectors for the 4 that it uses at
//            once, and the second waits for the first's store. The document: 21 % slower on a T4, 2 % faster on an
//            A100.
//   from     founding document 002
//   try      vecadd bench ladder --rungs naive,coarsen2,coarsen4,float4
#include "cuda/lab/ladder/coarsen.cuh"

enum { BLOCK = 256 };

static int
coarsen2_launch(const struct rung_call *call)
{
    return launch_coarsened<2>(call, BLOCK);
}

extern "C" const struct rung rung_coarsen2 = {
    .name = "coarsen2",
    .kind = RUNG_DEVICE,
    .after = "restrict",
    .changes = "two neighbouring elements a thread, scalar accesses",
    .tested = "double",
    .components = LADDER_COMPONENTS,
    .family = FAMILY_KERNELS,
    .load = "LDG.E",
    .headline = false,
    .sum = SUM_WRITTEN,
    .bytes_per_element = 12,
    .bytes_per_load = 4,
    .loads_in_flight = 2,
    .block = BLOCK,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 0,
    .params = {},
    .launch = coarsen2_launch,
    .run = nullptr,
};
