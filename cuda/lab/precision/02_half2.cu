// half2: two neighbouring elements a thread, loaded as one word and added one after the other.
//
//   after    half
//   changes  4-byte loads and a 4-byte store; still two scalar additions, as the document writes them. nvcc 13.0 makes
//            one packed addition of the two for sm_90, behind two permutations of bytes.
//   expects  as many bytes in flight as naive with float32, by half of half's threads: the document saw 1.24 times
//            half's speed at 2^20, and memory at 87 % in place of 71
//   from     founding document 001
//   try      vecadd bench precision --rungs half,half2
#include "cuda/lab/precision/precision.cuh"

enum { WORD = 2 }; /* components of a word */

template <typename Component>
__global__ static void
half2_add(const uint16_t *a, const uint16_t *b, uint16_t *c, uint64_t n)
{
    const uint64_t i = thread_number(), words = n / WORD;
    if (i < words)
        words_of(c)[i] = add_one_by_one<Component>(words_of(a)[i], words_of(b)[i]);
    else
        add_tail<Component>(a, b, c, n, words, WORD);
}

static int
half2_launch(const struct rung_call *call)
{
    return launch_threads<PRECISION_COMPONENTS>(
        call, BLOCK, [call](auto) { return threads_for(call->n, WORD); },
        [](auto component) { return half2_add<decltype(component)>; });
}

extern "C" const struct rung rung_half2 = {
    .name = "half2",
    .kind = RUNG_DEVICE,
    .after = "half",
    .changes = "a word of two elements a thread, two scalar additions",
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
    .launch = half2_launch,
    .run = nullptr,
};
