// half2_hadd2: a word of two elements, and both added at once.
//
//   after    half2
//   changes  one packed addition in place of two scalar ones
//   expects  nothing: an addition is one instruction of some twenty a thread, in the shadow of the memory
//   from     our own
//   try      vecadd bench precision --rungs half2,half2_hadd2
#include "cuda/lab/precision/precision.cuh"

enum { WORD = 2 }; /* components of a word */

template <typename Component>
__global__ static void
half2_hadd2_add(const uint16_t *a, const uint16_t *b, uint16_t *c, uint64_t n)
{
    const uint64_t i = thread_number(), words = n / WORD;
    if (i < words)
        words_of(c)[i] = Component::add(words_of(a)[i], words_of(b)[i]);
    else
        add_tail<Component>(a, b, c, n, words, WORD);
}

static int
half2_hadd2_launch(const struct rung_call *call)
{
    return launch_threads<PRECISION_COMPONENTS>(
        call, BLOCK, [call](auto) { return threads_for(call->n, WORD); },
        [](auto component) { return half2_hadd2_add<decltype(component)>; });
}

extern "C" const struct rung rung_half2_hadd2 = {
    .name = "half2_hadd2",
    .kind = RUNG_DEVICE,
    .after = "half2",
    .changes = "one packed addition for both elements of a word",
    .tested = "double",
    .components = PRECISION_COMPONENTS,
    .family = FAMILY_PRECISION,
    .load = "LDG.E",
    .headline = false,
    .sum = SUM_WRITTEN,
    .bytes_per_element = 12,
    .bytes_per_load = 4,
    .loads_in_flight = 2,
    .block = BLOCK,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 4,
    .params = {},
    .launch = half2_hadd2_launch,
    .run = nullptr,
};
