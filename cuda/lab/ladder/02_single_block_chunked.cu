// single_block_chunked: one block, each thread with a contiguous run of its own, as work is shared among CPU threads.
//
//   after    single_thread
//   changes  256 threads, each with ceil(n / 256) neighbouring elements
//   expects  neighbouring threads read addresses that are far apart: a warp's load takes 32 sectors of 32 bytes for 128
//            bytes that are used at once, where 4 would do. The L1 saves what it can keep until the next element wants
//            it.
//   from     founding document 004, in words
//   try      vecadd bench ladder --rungs single_block_chunked,single_block --sizes 2^20
#include "cuda/lab/ladder/rung.cuh"

enum { BLOCK = 256 };

template <typename Component, bool Accumulate>
__global__ static void
single_block_chunked_add(const typename Component::element *a, const typename Component::element *b,
                         typename Component::element *c, uint64_t n)
{
    const uint64_t run = (n + blockDim.x - 1) / blockDim.x, begin = threadIdx.x * run;
    for (uint64_t i = begin; i < begin + run && i < n; ++i)
        add_at<Component, Accumulate>(a, b, c, i);
}

static int
single_block_chunked_launch(const struct rung_call *call)
{
    return launch_blocks<WIDTH_COMPONENTS>(call, dim3(1), dim3(block_of(call, BLOCK)), [call](auto component) {
        return call->params[0] ? single_block_chunked_add<decltype(component), true>
                               : single_block_chunked_add<decltype(component), false>;
    });
}

extern "C" const struct rung rung_single_block_chunked = {
    .name = "single_block_chunked",
    .kind = RUNG_DEVICE,
    .after = "single_thread",
    .changes = "one block, a contiguous run for each thread",
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
    .blocks = 1,
    .min_cc = 0,
    .alignment = 0,
    .params = {ACCUMULATE_PARAM(0)},
    .launch = single_block_chunked_launch,
    .run = nullptr,
};
