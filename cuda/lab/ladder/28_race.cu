// race: all threads of a block add to every element, without synchronising. Wrong on purpose.
//
//   after    single_block
//   changes  each of T threads walks all n: c[i] += a[i] + b[i]. Threads read c before others have written it, and
//            their additions are lost.
//   expects  a failed check: c should hold T * (a + b), and a warp adds once for its 32 threads. One thread at a time,
//            as on a CPU, it is right: only a GPU shows what this rung is for.
//   from     founding document 004
//   try      vecadd bench ladder --rungs race,atomic --sizes 2^12
#include "cuda/lab/ladder/rung.cuh"

enum {
    BLOCK = 256,
    EXACT_COMPONENTS = 1 << COMPONENT_F32 | 1 << COMPONENT_F64 | 1 << COMPONENT_I32
}; /* those of rung atomic */

template <typename Component>
__global__ static void
race_add(const typename Component::element *a, const typename Component::element *b, typename Component::element *c,
         uint64_t n)
{
    for (uint64_t i = 0; i < n; ++i)
        c[i] = add_elements<Component>(c[i], add_elements<Component>(a[i], b[i]));
}

static int
race_launch(const struct rung_call *call)
{
    return launch_blocks<EXACT_COMPONENTS>(call, dim3(1), dim3(block_of(call, BLOCK)),
                                           [](auto component) { return race_add<decltype(component)>; });
}

extern "C" const struct rung rung_race = {
    .name = "race",
    .kind = RUNG_DEVICE,
    .after = "single_block",
    .changes = "every thread adds to every element: updates are lost",
    .tested = "gpu",
    .components = EXACT_COMPONENTS,
    .family = FAMILY_KERNELS,
    .load = "LDG.E",
    .headline = false,
    .sum = SUM_RACED,
    .bytes_per_element = 16,
    .bytes_per_load = 4,
    .loads_in_flight = 3,
    .block = BLOCK,
    .blocks = 1,
    .min_cc = 0,
    .alignment = 0,
    .params = {},
    .launch = race_launch,
    .run = nullptr,
};
