// single_thread: one thread walks the whole array. The CPU's program on a GPU.
//
//   after    -
//   changes  nothing yet: <<<1, 1>>>
//   expects  latency, and nothing else: one addition in flight. Of 8 neighbouring float32 elements one waits for the
//            memory (some 340 ns) and seven for the L1 (some 20 ns): 60 ns an element, where the memory of an
//            H200 would allow 2.5 ps. The document saw 50.
//   from     founding document 004
//   try      vecadd bench ladder --rungs single_thread,single_block --sizes 2^16
#include "cuda/lab/ladder/rung.cuh"

template <typename Component, bool Accumulate>
__global__ static void
single_thread_add(const typename Component::element *a, const typename Component::element *b,
                  typename Component::element *c, uint64_t n)
{
    for (uint64_t i = 0; i < n; ++i)
        add_at<Component, Accumulate>(a, b, c, i);
}

static int
single_thread_launch(const struct rung_call *call)
{
    return launch_blocks<WIDTH_COMPONENTS>(call, dim3(1), dim3(1), [call](auto component) {
        return call->params[0] ? single_thread_add<decltype(component), true>
                               : single_thread_add<decltype(component), false>;
    });
}

extern "C" const struct rung rung_single_thread = {
    .name = "single_thread",
    .kind = RUNG_DEVICE,
    .after = nullptr,
    .changes = "one thread walks all elements",
    .tested = "double",
    .components = WIDTH_COMPONENTS,
    .family = FAMILY_KERNELS,
    .load = "LDG.E",
    .headline = false,
    .sum = SUM_WRITTEN,
    .bytes_per_element = 12,
    .bytes_per_load = 4,
    .loads_in_flight = 2,
    .block = 1,
    .blocks = 1,
    .min_cc = 0,
    .alignment = 0,
    .params = {ACCUMULATE_PARAM(0)},
    .launch = single_thread_launch,
    .run = nullptr,
};
