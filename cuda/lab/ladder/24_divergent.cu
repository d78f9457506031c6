// divergent: the threads of a warp take `paths` ways through the same code.
//
//   after    naive
//   changes  lane l of a warp takes part in turn l % paths of a loop, so that the turns of a warp run one after the
//            other
//   expects  each turn waits for its own loads, and 1 / paths of a warp's threads have theirs in flight: by Little's
//            law the time grows with the number of paths, up to 32-fold, as soon as the other warps cannot fill the
//            gap
//   from     founding document 004, in words
//   try      vecadd bench ladder --rungs naive,divergent
#include "cuda/lab/ladder/rung.cuh"

enum { BLOCK = 256, WARP = 32 };

template <typename Component>
__global__ static void
divergent_add(const typename Component::element *a, const typename Component::element *b,
              typename Component::element *c, uint64_t n, unsigned paths)
{
    const uint64_t i = thread_number();
    const unsigned mine = threadIdx.x % WARP % paths;
    for (unsigned path = 0; path < paths; ++path)
        if (path == mine && i < n)
            c[i] = add_elements<Component>(a[i], b[i]);
}

static int
divergent_launch(const struct rung_call *call)
{
    return launch_threads<WIDTH_COMPONENTS>(
        call, BLOCK, [call](auto) { return call->n; },
        [](auto component) { return divergent_add<decltype(component)>; }, static_cast<unsigned>(call->params[0]));
}

extern "C" const struct rung rung_divergent = {
    .name = "divergent",
    .kind = RUNG_DEVICE,
    .after = "naive",
    .changes = "`paths` ways through a warp, one after the other",
    .tested = "double",
    .components = WIDTH_COMPONENTS,
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
    .params = {{"paths", "ways that the threads of a warp take", 1, WARP, WARP}},
    .launch = divergent_launch,
    .run = nullptr,
};
