// transpose_shared: squares of 32 by 32 are turned in shared memory.
//
//   after    transpose_naive
//   changes  a warp reads a row of the square and writes a row of the result; the turn happens in shared memory, where
//            an access costs the same in any direction but for its banks
//   expects  a gain where the memory or the L2 was the limit, as on the document's GPU. All 32 elements of a column of
//            the square lie in one bank of shared memory, so that a warp's load of a column takes 32 turns: 265 us for
//            2^26 elements on an H200. The copy's 240 come on top, because a block waits first for its loads and then
//            for its banks: 500 us. The document's listing does not check the bounds of its store; ours does.
//   from     founding document 004
//   try      vecadd bench transpose
#include "cuda/lab/transpose/tiles.cuh"

static int
transpose_shared_launch(const struct rung_call *call)
{
    return launch_tiles(call, transpose_in_shared<0>, TILE);
}

extern "C" const struct rung rung_transpose_shared = {
    .name = "transpose_shared",
    .kind = RUNG_MATRIX,
    .after = "transpose_naive",
    .changes = "turns squares of 32 by 32 in shared memory: rows are read and rows are written",
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
    .launch = transpose_shared_launch,
    .run = nullptr,
};
