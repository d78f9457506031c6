// single_block: one block whose threads stride through the array side by side.
//
//   after    single_block_chunked
//   changes  thread t takes elements t, t + 256, ...: a warp's load is one burst. It accumulates, as its document
//            does: c is read too, and 16 bytes an element move. With accumulate 0 it differs from the rung before by
//            coalescing alone.
//   expects  one multiprocessor's share of the bandwidth at most, and less by Little's law: 256 threads * 3 loads * 4
//            bytes = 3 KiB in flight, every 340 ns: 9 GB/s
//   from     founding document 004
//   try      vecadd bench ladder --rungs single_block,grid_stride --sizes 2^20
#include "cuda/lab/ladder/rung.cuh"

enum { BLOCK = 256 };

template <typename Component, bool Accumulate>
__global__ static void
single_block_add(const typename Component::element *a, const typename Component::element *b,
                 typename Component::element *c, uint64_t n)
{
    for (uint64_t i = threadIdx.x; i < n; i += blockDim.x)
        add_at<Component, Accumulate>(a, b, c, i);
}

static int
single_block_launch(const struct rung_call *call)
{
    return launch_blocks<WIDTH_COMPONENTS>(call, dim3(1), dim3(block_of(call, BLOCK)), [call](auto component) {
        return call->params[0] ? single_block_add<decltype(component), true>
                               : single_block_add<decltype(component), false>;
    });
}

extern "C" const struct rung rung_single_block = {
    .name = "single_block",
    .kind = RUNG_DEVICE,
    .after = "single_block_chunked",
    .changes = "threads side by side: coalesced; accumulates: 16 bytes an element",
    .tested = "double",
    .components = WIDTH_COMPONENTS,
    .family = FAMILY_KERNELS,
    .load = "LDG.E",
    .headline = false,
    .sum = SUM_ADDED,
    .bytes_per_element = 16,
    .bytes_per_load = 4,
    .loads_in_flight = 3,
    .block = BLOCK,
    .blocks = 1,
    .min_cc = 0,
    .alignment = 0,
    .params = {ACCUMULATE_PARAM(1)},
    .launch = single_block_launch,
    .run = nullptr,
};
