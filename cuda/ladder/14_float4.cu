// float4: one 16-byte load a thread in place of four 4-byte ones.
//
//   after    naive
//   changes  a thread owns one 16-byte vector; the n % V lanes left over go one to a thread of the same launch
//   expects  4x fewer load instructions, 64 KiB in flight an SM against naive's 16: 26 % faster at 2^28 float32 on
//            an H200
//   from     founding documents 000, 001, 002
//   try      vecadd bench --rungs naive,float4
#include "rung.cuh"

enum { BLOCK = 256 };

template <typename Lane>
__global__ static void
float4_add(const typename Lane::element *a, const typename Lane::element *b, typename Lane::element *c, uint64_t n)
{
    using vector = vector_of<Lane>;
    const uint64_t i = thread_number(), vectors = n / vector::size;
    if (i < vectors) {
        const vector x = reinterpret_cast<const vector *>(a)[i], y = reinterpret_cast<const vector *>(b)[i];
        reinterpret_cast<vector *>(c)[i] = add_vectors<Lane>(x, y);
        return;
    }
    const uint64_t tail = vectors * vector::size + (i - vectors);
    if (tail < n)
        c[tail] = add_elements<Lane>(a[tail], b[tail]);
}

static int
float4_launch(const struct rung_call *call)
{
    return launch_rung(call, BLOCK, one_vector_each, [](auto lane) { return float4_add<decltype(lane)>; });
}

extern "C" const struct rung rung_float4 = {
    .name = "float4",
    .kind = RUNG_DEVICE,
    .changes = "one 16-byte vector a thread",
    .tested = "double",
    .bytes_per_load = 16,
    .loads_in_flight = 2,
    .block = BLOCK,
    .alignment = 16,
    .lanes = ALL_LANES,
    .launch = float4_launch,
    .run = nullptr,
};
