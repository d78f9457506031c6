// sgemm_tiled: 128 by 128 elements of the product a block, 8 by 8 a thread.
//
//   after    sgemm_shared
//   changes  a thread reads 16 elements from shared memory into registers for 64 multiplications, where it read 128
//   expects  several times the speed of shared: a quarter of a load for each multiplication, so that loads and
//            multiplications keep each other's pace. It takes some 100 registers a thread, so that few warps fit, and
//            the work of one thread must hide its own waits. Blocks of 16384 elements are few where the product is
//            small: 64 for 2^20 elements, fewer than an H200 has multiprocessors.
//   from     founding document 004
//   try      vecadd bench sgemm
#include "cuda/lab/sgemm/tiles.cuh"

using tiled = tiling<128, 128, 8, 8, 8>;

extern "C" const struct rung rung_sgemm_tiled = {
    .name = "sgemm_tiled",
    .kind = RUNG_MATRIX,
    .after = "sgemm_shared",
    .changes = "128 by 128 elements a block, 8 by 8 a thread, in registers",
    .tested = "double",
    .components = 1 << COMPONENT_F32,
    .family = FAMILY_SGEMM,
    .load = "LDG.E",
    .headline = true,
    .sum = LEFT_PRODUCT,
    .bytes_per_element = 0,
    .bytes_per_load = 4,
    .loads_in_flight = 8,
    .block = 0,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 0,
    .params = {},
    .tile = tiled::tile,
    .launch = tiled::launch,
    .run = nullptr,
};
