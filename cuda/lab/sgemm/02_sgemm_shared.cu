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
#include "cuda/lab/sgemm/product.cuh"

enum { TILE = 32 };
static constexpr struct rung_tile tile = {TILE, TILE, TILE, 1, 1};

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
    return launch_product(call, multiply_squares, tile);
}

extern "C" const struct rung rung_sgemm_shared = {
    .name = "sgemm_shared",
    .kind = RUNG_MATRIX,
    .after = "sgemm_naive",
    .changes = "squares of 32 by 32 of both factors in shared memory",
    .tested = "double",
    .components = 1 << COMPONENT_F32,
    .family = FAMILY_SGEMM,
    .load = "LDG.E",
    .headline = true,
    .sum = LEFT_PRODUCT,
    .bytes_per_element = 0,
    .bytes_per_load = 4,
    .loads_in_flight = 2,
    .block = 0,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 0,
    .params = {},
    .tile = tile,
    .launch = sgemm_shared_launch,
    .run = nullptr,
};
