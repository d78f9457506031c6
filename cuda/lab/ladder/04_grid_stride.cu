// grid_stride: a few blocks on every multiprocessor, all striding through the array together.
//
//   after    single_block
//   changes  as many blocks as 4 (blocks_per_sm) times the multiprocessors, and a stride of the whole grid.
//            Accumulates too; with accumulate 0 it writes, as naive does.
//   expects  in flight on each multiprocessor: 4 blocks * 256 threads * 3 loads * 4 bytes = 12 KiB, and
//            4 KiB of stores. An H200 needs 28 KiB for 95 % of its rate; 8 blocks have 32 with their stores. On the
//            document's 288 GB/s card 4 were enough.
//   from     founding document 004
//   try      vecadd bench ladder --rungs grid_stride,naive
#include "cuda/lab/ladder/rung.cuh"

enum { BLOCK = 256 };

template <typename Component, bool Accumulate>
__global__ static void
grid_stride_add(const typename Component::element *a, const typename Component::element *b,
                typename Component::element *c, uint64_t n)
{
    const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
    for (uint64_t i = thread_number(); i < n; i += stride)
        add_at<Component, Accumulate>(a, b, c, i);
}

static int
grid_stride_launch(const struct rung_call *call)
{
    unsigned count;
    const cudaError_t error = multiprocessors(&count);
    if (error != cudaSuccess)
        return error;
    return launch_blocks<LADDER_COMPONENTS>(call, dim3(count * call->params[0]), dim3(block_of(call, BLOCK)),
                                            [call](auto component) {
                                                return call->params[1] ? grid_stride_add<decltype(component), true>
                                                                       : grid_stride_add<decltype(component), false>;
                                            });
}

extern "C" const struct rung rung_grid_stride = {
    .name = "grid_stride",
    .kind = RUNG_DEVICE,
    .after = "single_block",
    .changes = "some blocks on every multiprocessor; accumulates: 16 bytes an element",
    .tested = "double",
    .components = LADDER_COMPONENTS,
    .family = FAMILY_KERNELS,
    .load = "LDG.E",
    .headline = false,
    .sum = SUM_ADDED,
    .bytes_per_element = 16,
    .bytes_per_load = 4,
    .loads_in_flight = 3,
    .block = BLOCK,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 0,
    .params = {{"blocks_per_sm", "blocks a multiprocessor", 1, 4, 64}, ACCUMULATE_PARAM(1)},
    .launch = grid_stride_launch,
    .run = nullptr,
};
