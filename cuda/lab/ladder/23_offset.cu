// offset: each warp begins `offset` components past a 128-byte boundary.
//
//   after    naive
//   changes  thread t takes component t + offset, and the last threads the first components: all components are added
//            once
//   expects  a warp's 128 bytes lie in 5 sectors in place of 4 where the offset is no multiple of 32 bytes. The fifth
//            is also the next warp's, and comes from the L1 or the L2: the memory moves no more than before.
//   from     founding document 004, in words
//   try      vecadd bench ladder --rungs naive,offset
#include "cuda/lab/ladder/rung.cuh"

enum { BLOCK = 256 };

template <typename Component>
__global__ static void
offset_add(const typename Component::element *a, const typename Component::element *b, typename Component::element *c,
           uint64_t n, uint64_t offset)
{
    const uint64_t thread = thread_number();
    if (thread >= n)
        return;
    const uint64_t i = thread < n - offset ? thread + offset : thread - (n - offset);
    c[i] = add_elements<Component>(a[i], b[i]);
}

static int
offset_launch(const struct rung_call *call)
{
    const uint64_t offset = call->n ? static_cast<uint64_t>(call->params[0]) % call->n : 0;
    return launch_threads<WIDTH_COMPONENTS>(
        call, BLOCK, [call](auto) { return call->n; }, [](auto component) { return offset_add<decltype(component)>; },
        offset);
}

extern "C" const struct rung rung_offset = {
    .name = "offset",
    .kind = RUNG_DEVICE,
    .after = "naive",
    .changes = "warps begin `offset` elements past a burst",
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
    .params = {{"offset", "elements past a 128-byte boundary", 0, 1, 1024}},
    .launch = offset_launch,
    .run = nullptr,
};
