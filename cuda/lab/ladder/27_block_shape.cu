// block_shape: the array as a box, walked by three-dimensional blocks.
//
//   after    index_dim3
//   changes  blocks of x * y threads and as many layers as the block size leaves, on rows of 1024 components and planes
//            of 256 rows
//   expects  with x = 16 a warp reads two half bursts, 64 bytes each: two sectors of each are whole, so that the memory
//            moves no more; from x = 32 on one burst. With x below 8 float32 sectors are used in part. The document's
//            shapes, (16, 16, 16), (32, 16, 16) and (64, 8, 8), have 4096 and 8192 threads: no GPU launches more than
//            1024.
//   from     founding document 004, in words
//   try      vecadd bench ladder --rungs naive,block_shape
#include "cuda/lab/ladder/rung.cuh"

enum { BLOCK = 256 };
constexpr uint64_t WIDTH = 1024, HEIGHT = 256;

template <typename Component>
__global__ static void
block_shape_add(const typename Component::element *a, const typename Component::element *b,
                typename Component::element *c, uint64_t n)
{
    const uint64_t x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const uint64_t z = blockIdx.z * blockDim.z + threadIdx.z, i = (z * HEIGHT + y) * WIDTH + x;
    if (x < WIDTH && y < HEIGHT && i < n)
        c[i] = add_elements<Component>(a[i], b[i]);
}

static int
block_shape_launch(const struct rung_call *call)
{
    const unsigned threads = block_of(call, BLOCK), x = call->params[0], y = call->params[1], z = threads / (x * y);
    const uint64_t rows = ceil_div(call->n, WIDTH), planes = ceil_div(rows, HEIGHT);
    if (x * y * z != threads || ceil_div(planes, z) > UINT16_MAX)
        return cudaErrorInvalidConfiguration;
    const uint64_t width = call->n < WIDTH ? call->n : WIDTH, height = rows < HEIGHT ? rows : HEIGHT;
    const dim3 grid(ceil_div(width, x), ceil_div(height, y), ceil_div(planes, z));
    return launch_blocks<WIDTH_COMPONENTS>(call, grid, dim3(x, y, z),
                                           [](auto component) { return block_shape_add<decltype(component)>; });
}

extern "C" const struct rung rung_block_shape = {
    .name = "block_shape",
    .kind = RUNG_DEVICE,
    .after = "index_dim3",
    .changes = "three-dimensional blocks of x * y * z threads",
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
    .params = {{"x", "threads along a row", 1, 16, 1024}, {"y", "threads across rows", 1, 2, 1024}},
    .launch = block_shape_launch,
    .run = nullptr,
};
