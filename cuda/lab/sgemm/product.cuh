/* What the SGEMM rungs share: c = a b, where a is rows x inner, b inner x columns and c rows x columns, in C order. */
#ifndef VECADD_CUDA_LAB_SGEMM_PRODUCT_CUH
#define VECADD_CUDA_LAB_SGEMM_PRODUCT_CUH

#include "cuda/lab/rung.cuh"

using product_kernel = void(const float *a, const float *b, float *c, unsigned rows, unsigned columns, unsigned inner);

/* Queues the kernel: a block for each piece of c that the tile says, a thread for each of its. Queues nothing for a c
 * without elements. */
inline int
launch_product(const struct rung_call *call, product_kernel *kernel, const struct rung_tile &tile)
{
    if (call->rows == 0 || call->columns == 0)
        return cudaSuccess;
    const uint64_t across = ceil_div(call->columns, tile.columns), down = ceil_div(call->rows, tile.rows);
    /* Below, no sum of an index and a tile's edge overflows. */
    const uint64_t most = INT32_MAX;
    if (call->rows > most || call->columns > most || call->inner > most || down > UINT16_MAX)
        return cudaErrorInvalidConfiguration;
    const dim3 grid(static_cast<unsigned>(across), static_cast<unsigned>(down));
    const dim3 block(tile.columns / tile.thread_columns, tile.rows / tile.thread_rows);
    return launch_grid(kernel, grid, block, 0, target_of(call), static_cast<const float *>(call->a),
                       static_cast<const float *>(call->b), static_cast<float *>(call->c),
                       static_cast<unsigned>(call->rows), static_cast<unsigned>(call->columns),
                       static_cast<unsigned>(call->inner));
}

/* An element of a matrix with rows of `columns` elements; 0 outside of it. */
__device__ inline float
element_or_0(const float *matrix, unsigned row, unsigned column, unsigned rows, unsigned columns)
{
    return row < rows && column < columns ? matrix[uint64_t(row) * columns + column] : 0.0f;
}

#endif
