// half8: eight neighbouring elements a thread, as four words.
//
//   after    half2
//   changes  four 4-byte loads of each input, all in flight before the first addition. The document's listing of it is
//            missing: we read it as four half2 a thread.
//   expects  64 KiB in flight an SM, as float4 has. But a warp's loads are 16 bytes apart: each takes 16 sectors for
//            the 4 that it uses at once, and the L1 has to keep the rest for the three that follow. The document saw it
//            fall behind half2, 16.1 us against 13.2 at 2^20.
//   from     founding document 001
//   try      vecadd bench precision --rungs half2,half8,half8_pack
#include "cuda/lab/precision/precision.cuh"

enum { WORDS = 4, COMPONENTS = 2 * WORDS };

template <typename Component>
__global__ static void
half8_add(const uint16_t *a, const uint16_t *b, uint16_t *c, uint64_t n)
{
    const uint64_t i = thread_number(), eights = n / COMPONENTS, first = i * COMPONENTS;
    if (i >= eights) {
        add_tail<Component>(a, b, c, n, eights, COMPONENTS);
        return;
    }
    uint32_t x[WORDS], y[WORDS];
    for (unsigned k = 0; k < WORDS; ++k) {
        x[k] = words_of(a + first)[k];
        y[k] = words_of(b + first)[k];
    }
    for (unsigned k = 0; k < WORDS; ++k)
        words_of(c + first)[k] = add_one_by_one<Component>(x[k], y[k]);
}

static int
half8_launch(const struct rung_call *call)
{
    return launch_threads<PRECISION_COMPONENTS>(
        call, BLOCK, [call](auto) { return threads_for(call->n, COMPONENTS); },
        [](auto component) { return half8_add<decltype(component)>; });
}

extern "C" const struct rung rung_half8 = {
    .name = "half8",
    .kind = RUNG_DEVICE,
    .after = "half2",
    .changes = "four words of two elements a thread",
    .tested = "double",
    .components = PRECISION_COMPONENTS,
    .family = FAMILY_PRECISION,
    .load = "LDG.E",
    .headline = false,
    .sum = SUM_WRITTEN,
    .bytes_per_element = 12,
    .bytes_per_load = 4,
    .loads_in_flight = 8,
    .block = BLOCK,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 4,
    .params = {},
    .launch = half8_launch,
    .run = nullptr,
};
