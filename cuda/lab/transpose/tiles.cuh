/* What the transpose rungs share: a block for each square of the matrix, a thread for each of its elements. */
#ifndef VECADD_CUDA_LAB_TRANSPOSE_TILES_CUH
#define VECADD_CUDA_LAB_TRANSPOSE_TILES_CUH

#include "cuda/lab/rung.cuh"

enum { TILE = 32 }; /* elements of a square's edge: a row of it is a whole burst of 128 bytes */

using tile_kernel = void(const float *in, float *out, uint64_t rows, uint64_t columns);

/* Queues the kernel for squares with edges of so many elements. Queues nothing for a matrix without elements. */
inline int
launch_tiles(const struct rung_call *call, tile_kernel *kernel, unsigned edge)
{
    if (call->rows == 0 || call->columns == 0)
        return cudaSuccess;
    const uint64_t across = ceil_div(call->columns, edge), down = ceil_div(call->rows, edge);
    if (across > INT32_MAX || down > UINT16_MAX)
        return cudaErrorInvalidConfiguration;
    const dim3 grid(static_cast<unsigned>(across), static_cast<unsigned>(down));
    return launch_grid(kernel, grid, dim3(edge, edge), 0, target_of(call), static_cast<const float *>(call->a),
                       static_cast<float *>(call->c), call->rows, call->columns);
}

/* Turns each square in shared memory, so that a warp reads a row of the matrix and writes a row of the result.
 * `Padding` unused elements lie behind each row of the square. */
template <unsigned Padding>
__global__ static void
transpose_in_shared(const float *in, float *out, uint64_t rows, uint64_t columns)
{
    __shared__ float tile[TILE][TILE + Padding];
    const uint64_t left = uint64_t(blockIdx.x) * TILE, top = uint64_t(blockIdx.y) * TILE;
    const unsigned x = threadIdx.x, y = threadIdx.y;
    if (left + x < columns && top + y < rows)
        tile[y][x] = in[(top + y) * columns + left + x];
    __syncthreads();
    if (top + x < rows && left + y < columns)
        out[(left + y) * rows + top + x] = tile[x][y];
}

#endif
