// restrict: a promise to the compiler that the arrays do not overlap.
//
//   after    naive
//   changes  const __restrict__: the loads become LDG.E.CONSTANT, through the read-only path
//   expects  nothing: each element is read once, and one load of each input is all that a thread has to order. The
//            document measured 4.02 ms with and without.
//   from     founding document 000
//   try      vecadd bench ladder --rungs naive,restrict
#include "cuda/lab/ladder/rung.cuh"

enum { BLOCK = 256 };

template <typename Component>
__global__ static void
restrict_add(const typename Component::element *__restrict__ a, const typename Component::element *__restrict__ b,
             typename Component::element *__restrict__ c, uint64_t n)
{
    const uint64_t i = thread_number();
    if (i < n)
        c[i] = add_elements<Component>(a[i], b[i]);
}

static int
restrict_launch(const struct rung_call *call)
{
    return launch_threads<LADDER_COMPONENTS>(
        call, BLOCK, [call](auto) { return call->n; },
        [](auto component) { return restrict_add<decltype(component)>; });
}

extern "C" const struct rung rung_restrict = {
    .name = "restrict",
    .kind = RUNG_DEVICE,
    .after = "naive",
    .changes = "const __restrict__: loads through the read-only path",
    .tested = "double",
    .components = LADDER_COMPONENTS,
    .family = FAMILY_KERNELS,
    .load = "LDG.E.CONSTANT",
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
    .launch = restrict_launch,
    .run = nullptr,
};
