// index_dim3: the array as rows of a matrix, indexed by two-dimensional blocks.
//
//   after    naive
//   changes  blocks of 32 columns; blockIdx and threadIdx give row and column, and i = row * width + column
//   expects  little: one multiplication more for 12 bytes of memory, and a warp still reads one burst. An H200
//            takes 7 % longer than for naive.
//   from     founding document 004, in words
//   try      vecadd bench ladder --rungs naive,index_dim3,index_divmod
#include "cuda/lab/ladder/rung.cuh"

enum { BLOCK = 256, WARP = 32, WIDTH = 8192 };

template <typename Component>
__global__ static void
index_dim3_add(const typename Component::element *a, const typename Component::element *b,
               typename Component::element *c, uint64_t n, uint64_t width)
{
    const uint64_t column = thread_number(), row = static_cast<uint64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
    const uint64_t i = row * width + column;
    if (column < width && i < n)
        c[i] = add_elements<Component>(a[i], b[i]);
}

static int
index_dim3_launch(const struct rung_call *call)
{
    const uint64_t width = static_cast<uint64_t>(call->params[0]);
    const unsigned height = block_of(call, BLOCK) / WARP;
    const uint64_t columns = call->n < width ? call->n : width, rows = ceil_div(ceil_div(call->n, width), height);
    if (rows > UINT16_MAX) /* of blocks in y */
        return cudaErrorInvalidConfiguration;
    const dim3 grid(static_cast<unsigned>(ceil_div(columns, WARP)), static_cast<unsigned>(rows));
    return launch_blocks<WIDTH_COMPONENTS>(
        call, grid, dim3(WARP, height), [](auto component) { return index_dim3_add<decltype(component)>; }, width);
}

extern "C" const struct rung rung_index_dim3 = {
    .name = "index_dim3",
    .kind = RUNG_DEVICE,
    .after = "naive",
    .changes = "row and column from two-dimensional blocks",
    .tested = "double",
    .components = WIDTH_COMPONENTS,
    .family = FAMILY_KERNELS,
    .load = "LDG.E",
    .headline = false,
    .sum = SUM_WRITTEN,
    .bytes_per_element = 12,
    .bytes_per_load = 4,
    .loads_in_flight = 2,
    .block = BLOCK,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 0,
    .params = {{"width", "elements of a row", 32, WIDTH, 1 << 20}},
    .launch = index_dim3_launch,
    .run = nullptr,
};
