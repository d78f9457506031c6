// strided: neighbouring threads take components that are `stride` apart.
//
//   after    naive
//   changes  the grid sweeps the array `stride` times, each sweep taking every stride-th component: all components are
//            added once
//   expects  each component that is used moves a whole sector of 32 bytes to the multiprocessor, and a pair of sectors
//            from memory to the L2: the time grows with the stride up to 16 for float32 (64 for int8), where nothing
//            stays in the L2 from sweep to sweep. An H200 takes 0.95 ms at stride 4, 1.9 at 8 and 4.03 at 32 for 2^26.
//   from     founding document 004, in words
//   try      vecadd bench ladder --rungs naive,strided
#include "cuda/lab/ladder/rung.cuh"

enum { BLOCK = 256 };

template <typename Component>
__global__ static void
strided_add(const typename Component::element *a, const typename Component::element *b, typename Component::element *c,
            uint64_t n, uint64_t stride)
{
    const uint64_t sweep = (n + stride - 1) / stride, thread = thread_number();
    const uint64_t i = thread % sweep * stride + thread / sweep;
    if (thread < sweep * stride && i < n)
        c[i] = add_elements<Component>(a[i], b[i]);
}

static int
strided_launch(const struct rung_call *call)
{
    const uint64_t stride = static_cast<uint64_t>(call->params[0]);
    return launch_threads<WIDTH_COMPONENTS>(
        call, BLOCK, [=](auto) { return ceil_div(call->n, stride) * stride; },
        [](auto component) { return strided_add<decltype(component)>; }, stride);
}

extern "C" const struct rung rung_strided = {
    .name = "strided",
    .kind = RUNG_DEVICE,
    .after = "naive",
    .changes = "elements `stride` apart in a warp: bursts used in part",
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
    .params = {{"stride", "elements between neighbouring threads", 1, 8, 1024}},
    .launch = strided_launch,
    .run = nullptr,
};
