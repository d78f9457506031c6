// transpose_copy: the matrix as it is, by a thread for each element in squares of 32 by 32.
//
//   after    nothing: it is what transposing costs where the turn is free
//   changes  reads and writes rows
//   expects  the memory's speed, 126 us for 2^26 elements on an H200, less what blocks of 1024 threads cost: a
//            multiprocessor holds two, and while one of them ends its place stands empty. The addition naive reaches
//            66 % of its limit with such blocks, and 76 % with blocks of 256.
//   from     ours: founding document 004 has no copy beside its transposes
//   try      vecadd bench transpose
#include "cuda/lab/transpose/tiles.cuh"

__global__ static void
copy_tiles(const float *in, float *out, uint64_t rows, uint64_t columns)
{
    const uint64_t x = uint64_t(blockIdx.x) * TILE + threadIdx.x, y = uint64_t(blockIdx.y) * TILE + threadIdx.y;
    if (x < columns && y < rows)
        out[y * columns + x] = in[y * columns + x];
}

static int
transpose_copy_launch(const struct rung_call *call)
{
    return launch_tiles(call, copy_tiles, TILE);
}

extern "C" const struct rung rung_transpose_copy = {
    .name = "transpose_copy",
    .kind = RUNG_MATRIX,
    .after = nullptr,
    .changes = "copies the matrix as it is: the most that a transpose can reach",
    .tested = "double",
    .components = 1 << COMPONENT_F32,
    .family = FAMILY_TRANSPOSE,
    .load = "LDG.E",
    .headline = true,
    .sum = LEFT_COPY,
    .bytes_per_element = 8,
    .bytes_per_load = 4,
    .loads_in_flight = 1,
    .block = 0,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 0,
    .params = {},
    .launch = transpose_copy_launch,
    .run = nullptr,
};
