// float4_arg: vectors in, lanes out: a and b are pointers to 16-byte vectors, c is one to lanes.
//
//   after    float4_float2
//   changes  a vector's sums are stored one by one. The document compares the thread's number with n and reads up to
//            12 bytes past the end where n % 4 is not 0; here the last thread reads what is left lane by lane.
//   expects  float4's loads, and 4x its store instructions, each of which touches 16 sectors for the 4 that it fills:
//            behind float4 by what the L2 cannot put together again
//   from     founding document 002
//   try      vecadd bench ladder --rungs float4,float4_arg
#include "cuda/lab/ladder/rung.cuh"

enum { BLOCK = 256 };

template <typename Lane> struct elements_of {
    typename Lane::element at[vector_of<Lane>::size];
};

template <typename Lane>
__global__ static void
float4_arg_add(const vector_of<Lane> *a, const vector_of<Lane> *b, typename Lane::element *c, uint64_t n)
{
    const unsigned size = vector_of<Lane>::size;
    const uint64_t i = thread_number(), first = i * size;
    if (first + size <= n) {
        const vector_of<Lane> x = a[i], y = b[i]; /* copies: added where they lie, they would be loaded lane by lane */
        const auto sum = bits_as<elements_of<Lane>>(add_vectors<Lane>(x, y));
        for (unsigned k = 0; k < size; ++k)
            c[first + k] = sum.at[k];
        return;
    }
    const typename Lane::element *x = reinterpret_cast<const typename Lane::element *>(a);
    const typename Lane::element *y = reinterpret_cast<const typename Lane::element *>(b);
    for (unsigned k = 0; k < size; ++k) /* not up to n: the compiler would make 64 loads of that */
        if (first + k < n)
            c[first + k] = add_elements<Lane>(x[first + k], y[first + k]);
}

static int
float4_arg_launch(const struct rung_call *call)
{
    return with_lane_of<LADDER_LANES>(call, [call](auto lane) -> int {
        using vector = vector_of<decltype(lane)>;
        return launch(float4_arg_add<decltype(lane)>, ceil_div(call->n, vector::size), block_of(call, BLOCK),
                      target_of(call), static_cast<const vector *>(call->a), static_cast<const vector *>(call->b),
                      static_cast<typename decltype(lane)::element *>(call->c), call->n);
    });
}

extern "C" const struct rung rung_float4_arg = {
    .name = "float4_arg",
    .kind = RUNG_DEVICE,
    .after = "float4_float2",
    .changes = "vectors loaded, scalars stored",
    .tested = "double",
    .lanes = LADDER_LANES,
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
    .launch = float4_arg_launch,
    .run = nullptr,
};
