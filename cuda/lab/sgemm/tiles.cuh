/* Several elements of the product a thread: what it reads from shared memory into registers serves a whole piece of
 * `ThreadRows` by `ThreadColumns`. A block makes `Rows` by `Columns` elements and has `Inner` of the factors' inner
 * elements in shared memory at a time. */
#ifndef VECADD_CUDA_LAB_SGEMM_TILES_CUH
#define VECADD_CUDA_LAB_SGEMM_TILES_CUH

#include "cuda/lab/sgemm/product.cuh"

template <unsigned Rows, unsigned Columns, unsigned Inner, unsigned ThreadRows, unsigned ThreadColumns> struct tiling {
    static constexpr struct rung_tile tile = {Rows, Columns, Inner, ThreadRows, ThreadColumns};
    static constexpr unsigned threads = (Rows / ThreadRows) * (Columns / ThreadColumns);

    static int launch(const struct rung_call *call);
};

/* T is a tiling. */
template <typename T>
__global__ static void
multiply_tiles(const float *a, const float *b, float *c, unsigned rows, unsigned columns, unsigned inner)
{
    constexpr struct rung_tile tile = T::tile;
    __shared__ float of_a[tile.rows][tile.inner], of_b[tile.inner][tile.columns];
    const unsigned top = blockIdx.y * tile.rows, left = blockIdx.x * tile.columns;
    const unsigned own_top = threadIdx.y * tile.thread_rows, own_left = threadIdx.x * tile.thread_columns;
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    float sums[tile.thread_rows][tile.thread_columns] = {};

    for (unsigned first = 0; first < inner; first += tile.inner) {
        for (unsigned i = thread; i < tile.rows * tile.inner; i += T::threads) {
            const unsigned y = i / tile.inner, x = i % tile.inner;
            of_a[y][x] = element_or_0(a, top + y, first + x, rows, inner);
        }
        for (unsigned i = thread; i < tile.inner * tile.columns; i += T::threads) {
            const unsigned y = i / tile.columns, x = i % tile.columns;
            of_b[y][x] = element_or_0(b, first + y, left + x, inner, columns);
        }
        __syncthreads();
        for (unsigned k = 0; k < tile.inner; ++k) {
            float from_a[tile.thread_rows], from_b[tile.thread_columns];
            for (unsigned y = 0; y < tile.thread_rows; ++y)
                from_a[y] = of_a[own_top + y][k];
            for (unsigned x = 0; x < tile.thread_columns; ++x)
                from_b[x] = of_b[k][own_left + x];
            for (unsigned y = 0; y < tile.thread_rows; ++y)
                for (unsigned x = 0; x < tile.thread_columns; ++x)
                    sums[y][x] += from_a[y] * from_b[x];
        }
        __syncthreads(); /* ahead of the next pieces, which take their place */
    }
    for (unsigned y = 0; y < tile.thread_rows; ++y)
        for (unsigned x = 0; x < tile.thread_columns; ++x) {
            const unsigned row = top + own_top + y, column = left + own_left + x;
            if (row < rows && column < columns)
                c[uint64_t(row) * columns + column] = sums[y][x];
        }
}

template <unsigned Rows, unsigned Columns, unsigned Inner, unsigned ThreadRows, unsigned ThreadColumns>
int
tiling<Rows, Columns, Inner, ThreadRows, ThreadColumns>::launch(const struct rung_call *call)
{
    return launch_product(call, multiply_tiles<tiling>, tile);
}

#endif
