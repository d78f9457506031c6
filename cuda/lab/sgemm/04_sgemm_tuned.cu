// sgemm_tuned: 64 by 64 elements of the product a block, 4 by 4 a thread.
//
//   after    sgemm_tiled
//   changes  a quarter of the elements a thread: half the registers, so that twice as many warps fit
//   expects  less than tiled where the product is large, for all its occupancy, because a thread reads 8 elements from
//            shared memory for 16 multiplications, twice as many for each; unless the compiler, which unrolls this
//            loop as a whole, joins enough of them. More than tiled where the product is small, because four times as
//            many blocks reach more multiprocessors. The document has it 6 % ahead of tiled, but by its grids for 2^27
//            elements, and tiled for 2^20: its two figures do not compare.
//   from     founding document 004, whose grid and shared memory fit these numbers; it does not name them
//   try      vecadd bench sgemm
#include "cuda/lab/sgemm/tiles.cuh"

using tuned = tiling<64, 64, 8, 4, 4>;

extern "C" const struct rung rung_sgemm_tuned = {
    .name = "sgemm_tuned",
    .kind = RUNG_MATRIX,
    .after = "sgemm_tiled",
    .changes = "64 by 64 elements a block, 4 by 4 a thread: twice the occupancy, half the use of each element read",
    .tested = "double",
    .components = 1 << COMPONENT_F32,
    .family = FAMILY_SGEMM,
    .load = "LDG.E",
    .headline = true,
    .sum = LEFT_PRODUCT,
    .bytes_per_element = 0,
    .bytes_per_load = 4,
    .loads_in_flight = 4,
    .block = 0,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 0,
    .params = {},
    .tile = tuned::tile,
    .launch = tuned::launch,
    .run = nullptr,
};
