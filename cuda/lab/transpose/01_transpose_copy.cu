// transpose_copy: the matrix as it is, by a thread for each element in squares of 32 by 32.
//
//   after    nothing: it is what transposing costs where the turn is free
//   changes  reads and writes rows
//   expects  half the memory's speed, for all that 2^26 elements are only 127 us of an H200's memory: a thread has one
//            load of 4 bytes in flight, 8 KiB on a multiprocessor, where the addition naive has 16. Some 240 us: 248
//            rounds of 2048 threads that each wait 0.4 us for their load, 0.15 for a block in their place, and for the
//            requests of the others. A multiprocessor holds two such blocks, and while one ends its place is empty.
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
