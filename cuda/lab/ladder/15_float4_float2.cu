// float4_float2: 16-byte vectors, then an 8-byte one, then components.
//
//   after    float4
//   changes  the tail: at most one 8-byte vector; the components after it go one to a thread
//   expects  nothing: the tail is less than 16 bytes, one warp's work
//   from     founding document 002
//   try      vecadd bench ladder --rungs float4,float4_float2 --sizes 10,1000003
#include "cuda/lab/ladder/rung.cuh"

enum { BLOCK = 256 };

template <typename Component>
__global__ static void
float4_float2_add(const typename Component::element *a, const typename Component::element *b,
                  typename Component::element *c, uint64_t n)
{
    using vector = vector_of<Component>;
    using half = vector_of<Component, 8>;
    const uint64_t i = thread_number(), vectors = n / vector::size, halves = n / half::size;
    if (i < vectors) {
        const vector x = reinterpret_cast<const vector *>(a)[i], y = reinterpret_cast<const vector *>(b)[i];
        reinterpret_cast<vector *>(c)[i] = add_vectors<Component>(x, y);
    } else if (i == vectors && halves % 2) {
        const half x = reinterpret_cast<const half *>(a)[halves - 1], y = reinterpret_cast<const half *>(b)[halves - 1];
        reinterpret_cast<half *>(c)[halves - 1] = add_vectors<Component>(x, y);
    } else {
        const uint64_t tail = halves * half::size + (i - vectors - halves % 2);
        if (tail < n)
            c[tail] = add_elements<Component>(a[tail], b[tail]);
    }
}

static int
float4_float2_launch(const struct rung_call *call)
{
    const auto threads = [call](auto component) {
        const uint64_t size = vector_of<decltype(component)>::size;
        return call->n / size + call->n % size;
    };
    return launch_threads<LADDER_COMPONENTS>(call, BLOCK, threads,
                                             [](auto component) { return float4_float2_add<decltype(component)>; });
}

extern "C" const struct rung rung_float4_float2 = {
    .name = "float4_float2",
    .kind = RUNG_DEVICE,
    .after = "float4",
    .changes = "a tail of one 8-byte vector, then scalars",
    .tested = "double",
    .components = LADDER_COMPONENTS,
    .family = FAMILY_KERNELS,
    .load = "LDG.E.128",
    .headline = false,
    .sum = SUM_WRITTEN,
    .bytes_per_element = 12,
    .bytes_per_load = 16,
    .loads_in_flight = 2,
    .block = BLOCK,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 16,
    .params = {},
    .launch = float4_float2_launch,
    .run = nullptr,
};
