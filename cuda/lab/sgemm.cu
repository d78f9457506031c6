/* The product of two matrices, where each element is read many times: c = a b, where a is rows x inner, b inner x
 * columns and c rows x columns, in C order. */
#include "cuda/lab/rung.cuh"

using product_kernel = void(const float *a, const float *b, float *c, unsigned rows, unsigned columns, unsigned inner);

/* Also how many of the factors' inner elements a block has in shared memory at a time, and a thread's piece. */
struct product_tile : rung_tile {
    unsigned inner, thread_rows, thread_columns;
};

/* Queues the kernel: a block for each piece of c that the tile says, a thread for each of its. Queues nothing for a c
 * without elements. */
inline int
launch_product(const struct rung_call *call, product_kernel *kernel, const product_tile &tile)
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

// sgemm_naive: one element of the product a thread, in blocks of 32 by 8.
//
//   after    nothing: the first kernel that most people write
//   changes  each thread reads a row of a and a column of b from global memory
//   expects  an eighth of the cores' speed: two loads for each multiplication, where a multiprocessor begins one load
//            of a warp a cycle, and four multiplications. A warp reads one element of a and a burst of b; the L1 and
//            the L2 have most of both. The document stores without a look at the bounds; ours looks.
//   from     founding document 004
//   try      vecadd bench sgemm

static constexpr product_tile naive_tile = {{8, 32}, 0, 1, 1};

__global__ static void
multiply_each(const float *a, const float *b, float *c, unsigned rows, unsigned columns, unsigned inner)
{
    const unsigned row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows || column >= columns)
        return;
    float sum = 0.0f;
    for (unsigned k = 0; k < inner; ++k)
        sum += a[uint64_t(row) * inner + k] * b[uint64_t(k) * columns + column];
    c[uint64_t(row) * columns + column] = sum;
}

static int
sgemm_naive_launch(const struct rung_call *call)
{
    return launch_product(call, multiply_each, naive_tile);
}

extern "C" const struct rung rung_sgemm_naive = {
    .name = "sgemm_naive",
    .family = FAMILY_SGEMM,
    .changes = "one element of the product a thread: two loads for each multiplication",
    .tile = naive_tile,
    .launch = sgemm_naive_launch,
};

// sgemm_shared: squares of 32 by 32 of both factors in shared memory, one element of the product a thread.
//
//   after    sgemm_naive
//   changes  a block loads each square once and all of its 1024 threads read it from shared memory: each element comes
//            32 times less often from the L2
//   expects  little more than naive where the L1 and the L2 already spare the memory, as on an H200: a thread still
//            reads two elements for each multiplication, now from shared memory, of which the compiler joins four of a
//            into one load. Much more where the memory is the limit.
//   from     founding document 004
//   try      vecadd bench sgemm

enum { TILE = 32 };
static constexpr product_tile shared_tile = {{TILE, TILE}, TILE, 1, 1};

__global__ static void
multiply_squares(const float *a, const float *b, float *c, unsigned rows, unsigned columns, unsigned inner)
{
    __shared__ float of_a[TILE][TILE], of_b[TILE][TILE];
    const unsigned x = threadIdx.x, y = threadIdx.y;
    const unsigned row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0.0f;
    for (unsigned first = 0; first < inner; first += TILE) {
        of_a[y][x] = element_or_0(a, row, first + x, rows, inner);
        of_b[y][x] = element_or_0(b, first + y, column, inner, columns);
        __syncthreads();
        for (unsigned k = 0; k < TILE; ++k)
            sum += of_a[y][k] * of_b[k][x];
        __syncthreads(); /* ahead of the next squares, which take their place */
    }
    if (row < rows && column < columns)
        c[uint64_t(row) * columns + column] = sum;
}

static int
sgemm_shared_launch(const struct rung_call *call)
{
    return launch_product(call, multiply_squares, shared_tile);
}

extern "C" const struct rung rung_sgemm_shared = {
    .name = "sgemm_shared",
    .family = FAMILY_SGEMM,
    .after = "sgemm_naive",
    .changes = "squares of 32 by 32 of both factors in shared memory",
    .tile = shared_tile,
    .launch = sgemm_shared_launch,
};

/* Several elements of the product a thread: what it reads from shared memory into registers serves a whole piece of
 * `ThreadRows` by `ThreadColumns`. A block makes `Rows` by `Columns` elements and has `Inner` of the factors' inner
 * elements in shared memory at a time. */
template <unsigned Rows, unsigned Columns, unsigned Inner, unsigned ThreadRows, unsigned ThreadColumns> struct tiling {
    static constexpr product_tile tile = {{Rows, Columns}, Inner, ThreadRows, ThreadColumns};
    static constexpr unsigned threads = (Rows / ThreadRows) * (Columns / ThreadColumns);

    static int launch(const struct rung_call *call);
};

/* T is a tiling. */
template <typename T>
__global__ static void
multiply_tiles(const float *a, const float *b, float *c, unsigned rows, unsigned columns, unsigned inner)
{
    constexpr product_tile tile = T::tile;
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

using tiled = tiling<128, 128, 8, 8, 8>;

extern "C" const struct rung rung_sgemm_tiled = {
    .name = "sgemm_tiled",
    .family = FAMILY_SGEMM,
    .after = "sgemm_shared",
    .changes = "128 by 128 elements a block, 8 by 8 a thread, in registers",
    .loads_in_flight = 8,
    .tile = tiled::tile,
    .launch = tiled::launch,
};

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

using tuned = tiling<64, 64, 8, 4, 4>;

extern "C" const struct rung rung_sgemm_tuned = {
    .name = "sgemm_tuned",
    .family = FAMILY_SGEMM,
    .after = "sgemm_tiled",
    .changes = "64 by 64 elements a block, 4 by 4 a thread: twice the occupancy, half the use of each element read",
    .loads_in_flight = 4,
    .tile = tuned::tile,
    .launch = tuned::launch,
};

extern "C" const struct rung *const sgemm_rungs[] = {&rung_sgemm_naive, &rung_sgemm_shared, &rung_sgemm_tiled,
                                                     &rung_sgemm_tuned, nullptr};
