// transpose_naive: each thread writes its element where it belongs, in blocks of 16 by 16 as the document has them.
//
//   after    transpose_copy
//   changes  a warp reads two half rows of the matrix and writes two half columns of the result: 16 sectors, a whole
//            row of the result apart
//   expects  less than the copy's speed: a store of a warp fills 8 bytes of each of 16 sectors of 32, so that the L2 is
//            written four times the bytes. That is 230 us for 2^26 elements at an H200's 4.6 TB/s, and 290 with the
//            waits of threads that have 4 bytes in flight; more, as far as stores of a part of a sector are slower than
//            of a whole one.
//   from     founding document 004
//   try      vecadd bench transpose
#include "cuda/lab/transpose/tiles.cuh"

enum { EDGE = 16 };

__global__ static void
transpose_each(const float *in, float *out, uint64_t rows, uint64_t columns)
{
    const uint64_t x = uint64_t(blockIdx.x) * EDGE + threadIdx.x, y = uint64_t(blockIdx.y) * EDGE + threadIdx.y;
    if (x < columns && y < rows)
        out[x * rows + y] = in[y * columns + x];
}

static int
transpose_naive_launch(const struct rung_call *call)
{
    return launch_tiles(call, transpose_each, EDGE);
}

extern "C" const struct rung rung_transpose_naive = {
    .name = "transpose_naive",
    .kind = RUNG_MATRIX,
    .after = "transpose_copy",
    .changes = "reads rows and writes columns",
    .tested = "double",
    .components = 1 << COMPONENT_F32,
    .family = FAMILY_TRANSPOSE,
    .load = "LDG.E",
    .headline = true,
    .sum = LEFT_TRANSPOSE,
    .bytes_per_element = 8,
    .bytes_per_load = 4,
    .loads_in_flight = 1,
    .block = 0,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 0,
    .params = {},
    .launch = transpose_naive_launch,
    .run = nullptr,
};
