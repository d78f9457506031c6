// half8_pack: eight neighbouring elements a thread, as one 16-byte vector.
//
//   after    half8
//   changes  one 16-byte load of each input and one store, four packed additions. The document loads before it checks
//            that eight elements are left; here the elements after the last vector go one to a thread.
//   expects  half8's bytes in flight, by 2 loads of whole bursts in place of 8 of strided ones: the memory's speed
//            where there is work enough, 371 us against half's 761 at 2^28 on an H200. At 2^20 the document saw it
//            behind half2, 15.8 us against 13.2: 2^17 threads fill half of the places that an H200 has.
//   from     founding document 001
//   try      vecadd bench precision --rungs half2,half8,half8_pack
#include "cuda/lab/precision/precision.cuh"

template <typename Component>
__global__ static void
half8_pack_add(const uint16_t *a, const uint16_t *b, uint16_t *c, uint64_t n)
{
    using vector = vector_of<Component>;
    const uint64_t i = thread_number(), vectors = n / vector::size;
    if (i >= vectors) {
        add_tail<Component>(a, b, c, n, vectors, vector::size);
        return;
    }
    const vector x = reinterpret_cast<const vector *>(a)[i], y = reinterpret_cast<const vector *>(b)[i];
    reinterpret_cast<vector *>(c)[i] = add_vectors<Component>(x, y);
}

static int
half8_pack_launch(const struct rung_call *call)
{
    const auto threads = [call](auto component) { return threads_for(call->n, vector_size(component)); };
    return launch_threads<PRECISION_COMPONENTS>(call, BLOCK, threads,
                                                [](auto component) { return half8_pack_add<decltype(component)>; });
}

extern "C" const struct rung rung_half8_pack = {
    .name = "half8_pack",
    .kind = RUNG_DEVICE,
    .after = "half8",
    .changes = "one 16-byte vector a thread, four packed additions",
    .tested = "double",
    .components = PRECISION_COMPONENTS,
    .family = FAMILY_PRECISION,
    .load = "LDG.E.128",
    .headline = false,
    .sum = SUM_WRITTEN,
    .bytes_per_element = 12,
    .bytes_per_load = 16,
    .loads_in_flight = 2,
    .block = BLOCK,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 16,
    .params = {},
    .launch = half8_pack_launch,
    .run = nullptr,
};
