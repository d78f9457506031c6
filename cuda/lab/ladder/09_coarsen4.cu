// coarsen4: four neighbouring components a thread, by scalar accesses.
//
//   after    coarsen2
//   changes  thread t takes components 4t to 4t + 3: fewer threads, and a stride between the addresses of a warp
//   expects  worse than coarsen2: a warp's load takes 16 sectors for the 4 that it uses at once. 15 % slower than
//            naive on the document's A100.
//   from     founding document 002
//   try      vecadd bench ladder --rungs naive,coarsen2,coarsen4,float4
#include "cuda/lab/ladder/coarsen.cuh"

enum { BLOCK = 256 };

static int
coarsen4_launch(const struct rung_call *call)
{
    return launch_coarsened<4>(call, BLOCK);
}

extern "C" const struct rung rung_coarsen4 = {
    .name = "coarsen4",
    .kind = RUNG_DEVICE,
    .after = "coarsen2",
    .changes = "four neighbouring elements a thread, scalar accesses",
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
    .launch = coarsen4_launch,
    .run = nullptr,
};
