// sgemm_naive: one element of the product a thread, in blocks of 32 by 8.
//
//   after    nothing: the first kernel that most people write
//   changes  each thread reads a row of a and a column of b from global memory
//   expects  an eighth of the cores' speed: two loads for each multiplication, where a multiprocessor begins one load
//            of a warp a cycle, and four multiplications. A warp reads one element of a and a burst of b; the L1 and
//            the L2 have most of both. The document stores without a look at the bounds; ours looks.
//   from     founding document 004
//   try      vecadd bench sgemm
#include "cuda/lab/sgemm/product.cuh"

static constexpr struct rung_tile tile = {8, 32, 0, 1, 1};

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
    return launch_product(call, multiply_each, tile);
}

extern "C" const struct rung rung_sgemm_naive = {
    .name = "sgemm_naive",
    .kind = RUNG_MATRIX,
    .after = nullptr,
    .changes = "one element of the product a thread: two loads for each multiplication",
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
    .launch = sgemm_naive_launch,
    .run = nullptr,
};
