// waves: a grid-stride loop on a chosen share of the blocks that the GPU holds at once.
//
//   after    grid_stride
//   changes  the grid is `percent` of a full wave, by the occupancy calculator in place of a number of blocks per
//            multiprocessor; every block has the same share of the work. c is written and not read.
//   expects  90: a tenth of the multiprocessors' places is empty, and a tenth fewer bytes are in flight. 100: all
//            places are filled. 110: the last tenth of the blocks begins when the first ones are done and has the GPU
//            for itself: two turns for 1.1 of work, up to 2 / 1.1 = 1.8 times the time, less what a block alone on its
//            multiprocessor gains. 200: two full waves, as fast as one.
//   from     founding document 004, in words
//   try      vecadd bench blocksize --rungs waves
#include "cuda/lab/ladder/rung.cuh"

enum { BLOCK = 256, FULL = 100 };

template <typename Component>
__global__ static void
waves_add(const typename Component::element *a, const typename Component::element *b, typename Component::element *c,
          uint64_t n)
{
    const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
    for (uint64_t i = thread_number(); i < n; i += stride)
        c[i] = add_elements<Component>(a[i], b[i]);
}

/* `percent` of the blocks that the current device holds at once, at most as many as there is work for, at least one. */
static cudaError_t
share_of_a_wave(const void *kernel, uint64_t n, unsigned block, unsigned percent, unsigned *blocks)
{
    unsigned count;
    int held = 0;
    cudaError_t error = multiprocessors(&count);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&held, kernel, static_cast<int>(block), 0);
    if (error != cudaSuccess)
        return error;
    const uint64_t share = (static_cast<uint64_t>(count) * held * percent + FULL / 2) / FULL, most = ceil_div(n, block);
    *blocks = static_cast<unsigned>(share == 0 ? 1 : share < most ? share : most);
    return cudaSuccess;
}

static int
waves_launch(const struct rung_call *call)
{
    const unsigned block = block_of(call, BLOCK), percent = call->params[0];
    if (call->n == 0)
        return cudaSuccess;
    unsigned blocks = 0;
    const int error = with_component_of<LADDER_COMPONENTS>(call, [&](auto component) -> int {
        const void *kernel = reinterpret_cast<const void *>(waves_add<decltype(component)>);
        return share_of_a_wave(kernel, call->n, block, percent, &blocks);
    });
    if (error != cudaSuccess)
        return error;
    return launch_blocks<LADDER_COMPONENTS>(call, dim3(blocks), dim3(block),
                                            [](auto component) { return waves_add<decltype(component)>; });
}

extern "C" const struct rung rung_waves = {
    .name = "waves",
    .kind = RUNG_DEVICE,
    .after = "grid_stride",
    .changes = "as many blocks as `percent` of those that run at once",
    .tested = "double",
    .components = LADDER_COMPONENTS,
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
    .params = {{"percent", "blocks, of those that run at once", 1, FULL, 1000}},
    .launch = waves_launch,
    .run = nullptr,
};
