// naive: one component a thread, and a bounds check. The first kernel that most people write.
//
//   after    block_range
//   changes  as many threads as components: neighbouring threads read neighbouring addresses, so every burst is used
//            whole
//   expects  the memory's speed where there are components enough, less a quarter at 2^28 float32 on an H200 (925 us
//            against 736 for 16-byte vectors): a thread has only two 4-byte loads in flight. Half the speed for
//            float16.
//   from     founding documents 000, 001, 002, 003, 004
//   try      vecadd bench ladder --rungs naive,float4
#include "cuda/lab/ladder/rung.cuh"

enum { BLOCK = 256 };

template <typename Component>
__global__ static void
naive_add(const typename Component::element *a, const typename Component::element *b, typename Component::element *c,
          uint64_t n)
{
    const uint64_t i = thread_number();
    if (i < n)
        c[i] = add_elements<Component>(a[i], b[i]);
}

static int
naive_launch(const struct rung_call *call)
{
    return launch_threads<ALL_COMPONENTS>(
        call, BLOCK, [call](auto) { return call->n; }, [](auto component) { return naive_add<decltype(component)>; });
}

extern "C" const struct rung rung_naive = {
    .name = "naive",
    .kind = RUNG_DEVICE,
    .after = "block_range",
    .changes = "one element a thread, with a bounds check",
    .tested = "double",
    .components = ALL_COMPONENTS,
    .family = FAMILY_KERNELS,
    .load = "LDG.E",
    .headline = true,
    .sum = SUM_WRITTEN,
    .bytes_per_element = 12,
    .bytes_per_load = 4,
    .loads_in_flight = 2,
    .block = BLOCK,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 0,
    .params = {},
    .launch = naive_launch,
    .run = nullptr,
};
