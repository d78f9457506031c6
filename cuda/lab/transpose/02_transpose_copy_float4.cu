// transpose_copy_float4: the matrix as it is, 16 bytes a thread.
//
//   after    transpose_copy
//   changes  one 16-byte load a thread in place of a 4-byte one, in blocks of 256
//   expects  16 bytes in flight a thread where transpose_copy has 4: 32 KiB on a multiprocessor, at which an H200 has
//            96 % of its rate, 130 us for 2^26 elements. What naive and float4 show of additions, shown of copies.
//   from     ours: founding document 002 copies between device arrays by the driver alone
//   try      vecadd bench transpose --rungs transpose_copy,transpose_copy_float4,transpose_memcpy
#include "cuda/lab/rung.cuh"

/* The elements after the last vector go one to a thread. */
__global__ static void
copy_vectors(const float *in, float *out, uint64_t n)
{
    const uint64_t i = thread_number(), vectors = n / 4, last = vectors * 4 + (i - vectors);
    if (i < vectors)
        reinterpret_cast<float4 *>(out)[i] = reinterpret_cast<const float4 *>(in)[i];
    else if (last < n)
        out[last] = in[last];
}

static int
transpose_copy_float4_launch(const struct rung_call *call)
{
    const uint64_t n = static_cast<uint64_t>(call->rows) * call->columns;
    return launch(copy_vectors, n / 4 + n % 4, BLOCK, target_of(call), static_cast<const float *>(call->a),
                  static_cast<float *>(call->c), n);
}

extern "C" const struct rung rung_transpose_copy_float4 = {
    .name = "transpose_copy_float4",
    .kind = RUNG_MATRIX,
    .after = "transpose_copy",
    .changes = "copies 16 bytes a thread",
    .tested = "double",
    .components = 1 << COMPONENT_F32,
    .family = FAMILY_TRANSPOSE,
    .load = "LDG.E.128",
    .headline = true,
    .sum = LEFT_COPY,
    .bytes_per_element = 8,
    .bytes_per_load = 16,
    .loads_in_flight = 1,
    .block = 0,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 16,
    .params = {},
    .launch = transpose_copy_float4_launch,
    .run = nullptr,
};
