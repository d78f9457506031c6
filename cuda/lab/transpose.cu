/* A matrix that is written across the direction it is read in: a block for each square of it, a thread for each of its
 * elements. */
#include "cuda/lab/rung.cuh"

enum { TILE = 32 }; /* elements of a square's edge: a row of it is a whole burst of 128 bytes */

using tile_kernel = void(const float *in, float *out, uint64_t rows, uint64_t columns);

/* Queues the kernel for squares with edges of `edge` elements. Queues nothing for a matrix without elements. */
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
 * `Padding` unused elements follow each row of the square. */
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

// transpose_copy: the matrix as it is, by a thread for each element in squares of 32 by 32.
//
//   after    nothing: it is what transposing costs where the turn is free
//   changes  reads and writes rows
//   expects  half the memory's speed, for all that 2^26 elements are only 127 us of an H200's memory: a thread has one
//            load of 4 bytes in flight, 8 KiB on a multiprocessor, where the addition naive has 16. Some 240 us: 248
//            rounds of 2048 threads that each wait 0.4 us for their load, 0.15 for a block in their place, and for the
//            requests of the others. Two such blocks fit on a multiprocessor, and while one ends its place is empty.
//   from     ours: founding document 004 has no copy beside its transposes
//   try      vecadd bench transpose

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
    .family = FAMILY_TRANSPOSE,
    .changes = "copies the matrix as it is: the most that a transpose can reach",
    .sum = LEFT_COPY,
    .loads_in_flight = 1,
    .launch = transpose_copy_launch,
};

// transpose_copy_float4: the matrix as it is, 16 bytes a thread.
//
//   after    transpose_copy
//   changes  one 16-byte load a thread in place of a 4-byte one, in blocks of 256
//   expects  16 bytes in flight a thread where transpose_copy has 4: 32 KiB on a multiprocessor, at which an H200 has
//            96 % of its rate, 130 us for 2^26 elements. What naive and float4 show of additions, shown of copies.
//   from     ours: founding document 002 copies between device arrays by the driver alone
//   try      vecadd bench transpose --rungs transpose_copy,transpose_copy_float4,transpose_memcpy

/* The elements after the last vector go one to a thread. */
__global__ static void
copy_vectors(const float *in, float *out, uint64_t n)
{
    const uint64_t i = thread_number(), vectors = n / 4, last = vectors * 4 + (i - vectors);
    if (i < vectors)
        reinterpret_cast<float4 *>(out)[i] = reinterpret_cast<const float4 *>(in)[i];
    else if (last < n)
        out[last] = in[last];
}

static int
transpose_copy_float4_launch(const struct rung_call *call)
{
    const uint64_t n = static_cast<uint64_t>(call->rows) * call->columns;
    return launch(copy_vectors, threads_for(n, 4), BLOCK, target_of(call), static_cast<const float *>(call->a),
                  static_cast<float *>(call->c), n);
}

extern "C" const struct rung rung_transpose_copy_float4 = {
    .name = "transpose_copy_float4",
    .family = FAMILY_TRANSPOSE,
    .after = "transpose_copy",
    .changes = "copies 16 bytes a thread",
    .sum = LEFT_COPY,
    .bytes_per_load = 16,
    .loads_in_flight = 1,
    .alignment = 16,
    .launch = transpose_copy_float4_launch,
};

// transpose_memcpy: the matrix as it is, by the driver's copy between device arrays.
//
//   after    transpose_copy_float4
//   changes  cudaMemcpyAsync in place of a kernel of our own
//   expects  the same: between arrays of one GPU the driver launches a kernel too
//   from     founding document 002, whose function gets device pointers and copies by cudaMemcpy
//   try      vecadd bench transpose --rungs transpose_copy,transpose_copy_float4,transpose_memcpy

/* There is no launch of ours to describe: its facts are all 0. */
static int
transpose_memcpy_launch(const struct rung_call *call)
{
    const size_t bytes = call->rows * call->columns * sizeof(float);
    if (bytes == 0 || call->describe)
        return cudaSuccess;
    return cudaMemcpyAsync(call->c, call->a, bytes, cudaMemcpyDefault, static_cast<cudaStream_t>(call->stream));
}

extern "C" const struct rung rung_transpose_memcpy = {
    .name = "transpose_memcpy",
    .family = FAMILY_TRANSPOSE,
    .after = "transpose_copy_float4",
    .changes = "copies by cudaMemcpyAsync: the driver's own kernel",
    .sum = LEFT_COPY,
    .bytes_per_load = 0,
    .load = nullptr,
    .loads_in_flight = 0,
    .launch = transpose_memcpy_launch,
};

// transpose_naive: each thread writes its element where it belongs, in blocks of 16 by 16 as the document has them.
//
//   after    transpose_copy
//   changes  a warp reads two half rows of the matrix and writes two half columns of the result: 16 sectors, a whole
//            row of the result apart
//   expects  less than the copy's speed: a store of a warp fills 8 bytes of each of 16 sectors of 32, so that the L2 is
//            written four times the bytes. That is 230 us for 2^26 elements at an H200's 4.6 TB/s, and 290 with the
//            waits of threads that have 4 bytes in flight; more, as far as stores of a part of a sector are slower than
//            of a whole one.
//   from     founding document 004
//   try      vecadd bench transpose

enum { EDGE = 16 };

__global__ static void
transpose_each(const float *in, float *out, uint64_t rows, uint64_t columns)
{
    const uint64_t x = uint64_t(blockIdx.x) * EDGE + threadIdx.x, y = uint64_t(blockIdx.y) * EDGE + threadIdx.y;
    if (x < columns && y < rows)
        out[x * rows + y] = in[y * columns + x];
}

static int
transpose_naive_launch(const struct rung_call *call)
{
    return launch_tiles(call, transpose_each, EDGE);
}

extern "C" const struct rung rung_transpose_naive = {
    .name = "transpose_naive",
    .family = FAMILY_TRANSPOSE,
    .after = "transpose_copy",
    .changes = "reads rows and writes columns",
    .loads_in_flight = 1,
    .launch = transpose_naive_launch,
};

// transpose_shared: squares of 32 by 32 are turned in shared memory.
//
//   after    transpose_naive
//   changes  a warp reads a row of the square and writes a row of the result; the turn happens in shared memory, where
//            an access costs the same in any direction but for its banks
//   expects  a gain where the memory or the L2 was the limit, as on the document's GPU. All 32 elements of a column of
//            the square are in one bank of shared memory, so that a warp's load of a column takes 32 turns: 265 us for
//            2^26 elements on an H200. The copy's 240 come on top, because a block waits first for its loads and then
//            for its banks: 500 us. The document's listing does not check the bounds of its store; ours does.
//   from     founding document 004
//   try      vecadd bench transpose

static int
transpose_shared_launch(const struct rung_call *call)
{
    return launch_tiles(call, transpose_in_shared<0>, TILE);
}

extern "C" const struct rung rung_transpose_shared = {
    .name = "transpose_shared",
    .family = FAMILY_TRANSPOSE,
    .after = "transpose_naive",
    .changes = "turns squares of 32 by 32 in shared memory: rows are read and rows are written",
    .loads_in_flight = 1,
    .launch = transpose_shared_launch,
};

// transpose_padded: as transpose_shared, with an unused element after each row of the square.
//
//   after    transpose_shared
//   changes  rows of the square are 33 words apart, so that the elements of a column are in 32 different banks
//   expects  the copy's speed, less a wait at a barrier: a warp's load of a column takes one turn in place of 32: 255
//            us for 2^26 elements on an H200
//   from     ours: founding document 004 has no padding
//   try      vecadd bench transpose

static int
transpose_padded_launch(const struct rung_call *call)
{
    return launch_tiles(call, transpose_in_shared<1>, TILE);
}

extern "C" const struct rung rung_transpose_padded = {
    .name = "transpose_padded",
    .family = FAMILY_TRANSPOSE,
    .after = "transpose_shared",
    .changes = "rows of the square are 33 words apart: a column of it is in 32 banks, no longer in one",
    .loads_in_flight = 1,
    .launch = transpose_padded_launch,
};

extern "C" const struct rung *const transpose_rungs[] = {&rung_transpose_copy,
                                                         &rung_transpose_copy_float4,
                                                         &rung_transpose_memcpy,
                                                         &rung_transpose_naive,
                                                         &rung_transpose_shared,
                                                         &rung_transpose_padded,
                                                         nullptr};
