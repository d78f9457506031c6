/* The copy engine's half of tensor maps: cuda/ptx.cuh's twin of the copy of a box. */
#ifndef VECADD_TENSOR_MAP_H
#define VECADD_TENSOR_MAP_H

#include <cuda.h>

/* Copies the box of a two-dimensional map that begins at (x, y), zeros for what is beyond the array. A map that
 * cuTensorMapEncodeTiled did not make, and a target that is not 128-byte aligned, is a fault. */
void double_copy_box(void *target, const CUtensorMap *map, int x, int y);

#endif
