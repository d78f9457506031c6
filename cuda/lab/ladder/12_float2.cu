// float2: one 8-byte load a thread in place of two 4-byte ones.
//
//   after    unroll4
//   changes  a thread owns one 8-byte vector; the n % V components left over go one to a thread of the same launch
//   expects  32 KiB in flight an SM, as unroll2 has, by half of its instructions
//   from     founding document 003
//   try      vecadd bench ladder --rungs unroll2,float2,float4
#include "cuda/lab/ladder/rung.cuh"

enum { BLOCK = 256 };

template <typename Component>
__global__ static void
float2_add(const typename Component::element *a, const typename Component::element *b, typename Component::element *c,
           uint64_t n)
{
    using vector = vector_of<Component, 8>;
    const uint64_t i = thread_number(), vectors = n / vector::size;
    if (i < vectors) {
        const vector x = reinterpret_cast<const vector *>(a)[i], y = reinterpret_cast<const vector *>(b)[i];
        reinterpret_cast<vector *>(c)[i] = add_vectors<Component>(x, y);
        return;
    }
    const uint64_t tail = vectors * vector::size + (i - vectors);
    if (tail < n)
        c[tail] = add_elements<Component>(a[tail], b[tail]);
}

static int
float2_launch(const struct rung_call *call)
{
    const auto threads = [call](auto component) {
        const uint64_t size = vector_of<decltype(component), 8>::size;
        return call->n / size + call->n % size;
    };
    return launch_threads<LADDER_COMPONENTS>(call, BLOCK, threads,
                                             [](auto component) { return float2_add<decltype(component)>; });
}

extern "C" const struct rung rung_float2 = {
    .name = "float2",
    .kind = RUNG_DEVICE,
    .after = "unroll4",
    .changes = "one 8-byte vector a thread",
    .tested = "double",
    .components = LADDER_COMPONENTS,
    .family = FAMILY_KERNELS,
    .load = "LDG.E.64",
    .headline = false,
    .sum = SUM_WRITTEN,
    .bytes_per_element = 12,
    .bytes_per_load = 8,
    .loads_in_flight = 2,
    .block = BLOCK,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 8,
    .params = {},
    .launch = float2_launch,
    .run = nullptr,
};
