// block_range: each block owns a contiguous range, its threads stride inside of it.
//
//   after    grid_stride
//   changes  the range in place of the grid's stride; c is written and not read
//   expects  no difference by bursts, which both keep whole, or by channels, which are interleaved every few hundred
//            bytes. But c is no longer read: 4 blocks * 256 threads * 2 loads * 4 bytes are 8 KiB in flight on each
//            multiprocessor for grid_stride's 12, and by Little's law the rate falls with them, to three quarters.
//   from     founding document 004, in words
//   try      vecadd bench ladder --rungs grid_stride,block_range
#include "cuda/lab/ladder/rung.cuh"

enum { BLOCK = 256 };

template <typename Component, bool Accumulate>
__global__ static void
block_range_add(const typename Component::element *a, const typename Component::element *b,
                typename Component::element *c, uint64_t n)
{
    const uint64_t range = (n + gridDim.x - 1) / gridDim.x, begin = blockIdx.x * range;
    const uint64_t end = begin + range < n ? begin + range : n;
    for (uint64_t i = begin + threadIdx.x; i < end; i += blockDim.x)
        add_at<Component, Accumulate>(a, b, c, i);
}

static int
block_range_launch(const struct rung_call *call)
{
    unsigned count;
    const cudaError_t error = multiprocessors(&count);
    if (error != cudaSuccess)
        return error;
    return launch_blocks<LADDER_COMPONENTS>(call, dim3(count * call->params[0]), dim3(block_of(call, BLOCK)),
                                            [call](auto component) {
                                                return call->params[1] ? block_range_add<decltype(component), true>
                                                                       : block_range_add<decltype(component), false>;
                                            });
}

extern "C" const struct rung rung_block_range = {
    .name = "block_range",
    .kind = RUNG_DEVICE,
    .after = "grid_stride",
    .changes = "a contiguous range for each block",
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
    .params = {{"blocks_per_sm", "blocks a multiprocessor", 1, 4, 64}, ACCUMULATE_PARAM(0)},
    .launch = block_range_launch,
    .run = nullptr,
};
