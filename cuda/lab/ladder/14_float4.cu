// float4: one 16-byte load a thread in place of four 4-byte ones.
//
//   after    float2_unroll2
//   changes  a thread owns one 16-byte vector; the n % V components left over go one to a thread of the same launch
//   expects  4x fewer load instructions, 64 KiB in flight an SM against naive's 16: 26 % faster at 2^28 float32 on
//            an H200
//   from     founding documents 000, 001, 002
//   try      vecadd bench ladder --rungs naive,float4
#include "cuda/lab/ladder/rung.cuh"

enum { BLOCK = 256 };

template <typename Component>
__global__ static void
float4_add(const typename Component::element *a, const typename Component::element *b, typename Component::element *c,
           uint64_t n)
{
    using vector = vector_of<Component>;
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
float4_launch(const struct rung_call *call)
{
    const auto threads = [call](auto component) {
        const uint64_t size = vector_of<decltype(component)>::size;
        return call->n / size + call->n % size;
    };
    return launch_threads<ALL_COMPONENTS>(call, BLOCK, threads,
                                          [](auto component) { return float4_add<decltype(component)>; });
}

extern "C" const struct rung rung_float4 = {
    .name = "float4",
    .kind = RUNG_DEVICE,
    .after = "float2_unroll2",
    .changes = "one 16-byte vector a thread",
    .tested = "double",
    .components = ALL_COMPONENTS,
    .family = FAMILY_KERNELS,
    .load = "LDG.E.128",
    .headline = true,
    .sum = SUM_WRITTEN,
    .bytes_per_element = 12,
    .bytes_per_load = 16,
    .loads_in_flight = 2,
    .block = BLOCK,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 16,
    .params = {},
    .launch = float4_launch,
    .run = nullptr,
};
