/* What 16-bit elements bring: founding document 001's rungs, in its order. They are compared with naive and float4 of
 * float32. */
#include "cuda/lab/ptx.cuh"
#include "cuda/lab/rung.cuh"

enum { WORD = 2 }; /* components of a word */

/* One component, by the instruction for one. */
template <typename Component>
__device__ inline uint16_t
add_one(uint16_t a, uint16_t b)
{
    if constexpr (Component::number == COMPONENT_F16)
        return add_f16(a, b);
    else
        return add_bf16(a, b);
}

/* Both components of a word, one after the other. */
template <typename Component>
__device__ inline uint32_t
add_one_by_one(uint32_t a, uint32_t b)
{
    const uint32_t low = add_one<Component>(static_cast<uint16_t>(a), static_cast<uint16_t>(b));
    const uint32_t high = add_one<Component>(static_cast<uint16_t>(a >> 16), static_cast<uint16_t>(b >> 16));
    return high << 16 | low;
}

/* An array of components as words; it must be aligned to words. */
__device__ inline const uint32_t *
words_of(const uint16_t *components)
{
    return reinterpret_cast<const uint32_t *>(components);
}

__device__ inline uint32_t *
words_of(uint16_t *components)
{
    return reinterpret_cast<uint32_t *>(components);
}

/* Adds the components after the last of `pieces` pieces of `size` components, one a thread; the grid has threads_for(n,
 * size) threads. */
template <typename Component>
__device__ inline void
add_tail(const uint16_t *a, const uint16_t *b, uint16_t *c, uint64_t n, uint64_t pieces, uint64_t size)
{
    const uint64_t i = pieces * size + (thread_number() - pieces);
    if (i < n)
        c[i] = add_one<Component>(a[i], b[i]);
}

// half: 16-bit elements in place of 32-bit ones, one a thread.
//
//   after    naive
//   changes  the element: half the bytes for the same n, added by the instruction for one 16-bit number
//   expects  not twice the speed: a thread's loads are 2 bytes wide, so that 2048 threads have 8 KiB in flight an SM
//            where naive has 16 with float32, and an H200 needs some 28. Below 2^20 the launch is most of the time, and
//            nothing changes. The document: 1.53 times the speed of float32 at 2^20.
//   from     founding document 001
//   try      vecadd bench precision --rungs naive,half

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
    return launch_each<PRECISION_COMPONENTS>(call, [](auto component) { return half_add<decltype(component)>; });
}

extern "C" const struct rung rung_half = {
    .name = "half",
    .family = FAMILY_PRECISION,
    .after = "naive",
    .changes = "16-bit elements: half the bytes, one element a thread",
    .bytes_per_load = 2,
    .launch = half_launch,
};

// half2: two neighbouring elements a thread, loaded as one word and added one after the other.
//
//   after    half
//   changes  4-byte loads and a 4-byte store; still two scalar additions, as the document writes them. nvcc 13.0 makes
//            one packed addition of the two for sm_90, after two permutations of bytes.
//   expects  as many bytes in flight as naive with float32, by half of half's threads: the document saw 1.24 times
//            half's speed at 2^20, and memory at 87 % in place of 71
//   from     founding document 001
//   try      vecadd bench precision --rungs half,half2

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
    return launch_vectors<PRECISION_COMPONENTS, 4>(call, [](auto component) { return half2_add<decltype(component)>; });
}

extern "C" const struct rung rung_half2 = {
    .name = "half2",
    .family = FAMILY_PRECISION,
    .after = "half",
    .changes = "a word of two elements a thread, two scalar additions",
    .alignment = 4,
    .launch = half2_launch,
};

// half2_hadd2: a word of two elements, and both added at once.
//
//   after    half2
//   changes  one packed addition in place of two scalar ones
//   expects  nothing: an addition is one instruction of some twenty a thread, in the shadow of the memory
//   from     our own
//   try      vecadd bench precision --rungs half2,half2_hadd2

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
    return launch_vectors<PRECISION_COMPONENTS, 4>(call,
                                                   [](auto component) { return half2_hadd2_add<decltype(component)>; });
}

extern "C" const struct rung rung_half2_hadd2 = {
    .name = "half2_hadd2",
    .family = FAMILY_PRECISION,
    .after = "half2",
    .changes = "one packed addition for both elements of a word",
    .alignment = 4,
    .launch = half2_hadd2_launch,
};

// half8: eight neighbouring elements a thread, as four words.
//
//   after    half2
//   changes  four 4-byte loads of each input, all in flight before the first addition. The document's listing of it is
//            missing: we read it as four half2 a thread.
//   expects  64 KiB in flight an SM, as float4 has. But a warp's loads are 16 bytes apart: each takes 16 sectors for
//            the 4 that it uses at once, and the L1 has to keep the rest for the three that follow. The document saw it
//            slower than half2, 16.1 us against 13.2 at 2^20.
//   from     founding document 001
//   try      vecadd bench precision --rungs half2,half8,half8_pack

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
    return launch_vectors<PRECISION_COMPONENTS, 16>(call,
                                                    [](auto component) { return half8_add<decltype(component)>; });
}

extern "C" const struct rung rung_half8 = {
    .name = "half8",
    .family = FAMILY_PRECISION,
    .after = "half2",
    .changes = "four words of two elements a thread",
    .loads_in_flight = 8,
    .alignment = 4,
    .launch = half8_launch,
};

// half8_pack: eight neighbouring elements a thread, as one 16-byte vector.
//
//   after    half8
//   changes  one 16-byte load of each input and one store, four packed additions. The document loads before it checks
//            that eight elements are left; here the elements after the last vector go one to a thread.
//   expects  half8's bytes in flight, by 2 loads of whole bursts in place of 8 of strided ones: the memory's speed
//            where there is work enough, 371 us against half's 761 at 2^28 on an H200. At 2^20 the document saw it
//            slower than half2, 15.8 us against 13.2: 2^17 threads fill half of the places that an H200 has.
//   from     founding document 001
//   try      vecadd bench precision --rungs half2,half8,half8_pack

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
    return launch_vectors<PRECISION_COMPONENTS, 16>(call,
                                                    [](auto component) { return half8_pack_add<decltype(component)>; });
}

extern "C" const struct rung rung_half8_pack = {
    .name = "half8_pack",
    .family = FAMILY_PRECISION,
    .after = "half8",
    .changes = "one 16-byte vector a thread, four packed additions",
    .bytes_per_load = 16,
    .alignment = 16,
    .launch = half8_pack_launch,
};

extern "C" const struct rung *const precision_rungs[] = {&rung_half,  &rung_half2,      &rung_half2_hadd2,
                                                         &rung_half8, &rung_half8_pack, nullptr};
