// transpose_memcpy: the matrix as it is, by the driver's copy between device arrays.
//
//   after    transpose_copy_float4
//   changes  cudaMemcpyAsync in place of a kernel of our own
//   expects  the same: between arrays of one GPU the driver launches a kernel too
//   from     founding document 002, whose function gets device pointers and copies by cudaMemcpy
//   try      vecadd bench transpose --rungs transpose_copy,transpose_copy_float4,transpose_memcpy
#include "cuda/lab/rung.cuh"

/* There is no launch of ours to describe: its facts are all 0. */
static int
transpose_memcpy_launch(const struct rung_call *call)
{
    const size_t bytes = call->rows * call->columns * sizeof(float);
    if (bytes == 0 || call->describe)
        return cudaSuccess;
    return cudaMemcpyAsync(call->c, call->a, bytes, cudaMemcpyDefault, static_cast<cudaStream_t>(call->stream));
}

extern "C" const struct rung rung_transpose_memcpy = {
    .name = "transpose_memcpy",
    .kind = RUNG_MATRIX,
    .after = "transpose_copy_float4",
    .changes = "copies by cudaMemcpyAsync: the driver's own kernel",
    .tested = "double",
    .components = 1 << COMPONENT_F32,
    .family = FAMILY_TRANSPOSE,
    .load = nullptr,
    .headline = true,
    .sum = LEFT_COPY,
    .bytes_per_element = 8,
    .bytes_per_load = 0,
    .loads_in_flight = 0,
    .block = 0,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 0,
    .params = {},
    .launch = transpose_memcpy_launch,
    .run = nullptr,
};
