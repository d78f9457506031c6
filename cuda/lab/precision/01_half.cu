// half: 16-bit elements in place of 32-bit ones, one a thread.
//
//   after    naive
//   changes  the element: half the bytes for the same n, added by the instruction for one 16-bit number
//   expects  not twice the speed: a thread's loads are 2 bytes wide, so that 2048 threads have 8 KiB in flight an SM
//            where naive has 16 with float32, and an H200 needs some 28. Below 2^20 the launch is most of the time, and
//            nothing changes. The document: 1.53 times the speed of float32 at 2^20.
//   from     founding document 001
//   try      vecadd bench precision --rungs naive,half
#include "cuda/lab/precision/precision.cuh"

template <typename Component>
__global__ static void
half_add(const uint16_t *a, const uint16_t *b, uint16_t *c, uint64_t n)
{
    const uint64_t i = thread_number();
    if (i < n)
        c[i] = add_one<Component>(a[i], b[i]);
}

static int
half_launch(const struct rung_call *call)
{
    return launch_threads<PRECISION_COMPONENTS>(
        call, BLOCK, [call](auto) { return call->n; }, [](auto component) { return half_add<decltype(component)>; });
}

extern "C" const struct rung rung_half = {
    .name = "half",
    .kind = RUNG_DEVICE,
    .after = "naive",
    .changes = "16-bit elements: half the bytes, one element a thread",
    .tested = "double",
    .components = PRECISION_COMPONENTS,
    .family = FAMILY_PRECISION,
    .load = "LDG.E.U16",
    .headline = false,
    .sum = SUM_WRITTEN,
    .bytes_per_element = 12,
    .bytes_per_load = 2,
    .loads_in_flight = 2,
    .block = BLOCK,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 0,
    .params = {},
    .launch = half_launch,
    .run = nullptr,
};
