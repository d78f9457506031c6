// transpose_padded: as transpose_shared, with an unused element behind each row of the square.
//
//   after    transpose_shared
//   changes  rows of the square lie 33 words apart, so that the elements of a column lie in 32 different banks
//   expects  the copy's speed, less a wait at a barrier: a warp's load of a column takes one turn in place of 32: 255
//            us for 2^26 elements on an H200
//   from     ours: founding document 004 has no padding
//   try      vecadd bench transpose
#include "cuda/lab/transpose/tiles.cuh"

static int
transpose_padded_launch(const struct rung_call *call)
{
    return launch_tiles(call, transpose_in_shared<1>, TILE);
}

extern "C" const struct rung rung_transpose_padded = {
    .name = "transpose_padded",
    .kind = RUNG_MATRIX,
    .after = "transpose_shared",
    .changes = "rows of the square lie 33 words apart: a column of it lies in 32 banks, no longer in one",
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
    .launch = transpose_padded_launch,
    .run = nullptr,
};
