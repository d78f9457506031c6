/* Loads 16-byte vectors at any alignment: by one aligned load, or by two and a shift that is the same for the whole
 * operand. No loss on an H200, where scalar loads cost 30 %. */
#ifndef VECADD_CUDA_SHIFTED_CUH
#define VECADD_CUDA_SHIFTED_CUH

#include <stdint.h>

#include "cuda/components.cuh"
#include "cuda/kernels.h"

/* Bytes past the last 16-byte boundary. */
__host__ __device__ inline unsigned
phase_of(const void *pointer)
{
    return reinterpret_cast<uintptr_t>(pointer) % 16;
}

template <enum add_loads Loads>
__device__ inline words
load_words(const words *from)
{
    return Loads == LOADS_EVICT_LAST ? load_evict_last(from) : *from;
}

/* The two aligned vectors around a misaligned one; equal if the operand is aligned. */
struct straddle {
    words low, high;
    unsigned phase;
};

/* The address of a straddle's low vector; if `first` is misaligned, the high one follows it. */
__device__ inline const words *
low_words(const void *first, uint64_t vector)
{
    return reinterpret_cast<const words *>(static_cast<const char *>(first) - phase_of(first)) + vector;
}

template <enum add_loads Loads>
__device__ inline straddle
load_straddle(const void *first, uint64_t vector)
{
    const unsigned phase = phase_of(first);
    const words *low = low_words(first, vector);
    return {load_words<Loads>(low), load_words<Loads>(low + (phase != 0)), phase};
}

__device__ inline words
align_words(const straddle &s)
{
    uint32_t w[8];
    for (int i = 0; i < 4; ++i) {
        w[i] = s.low.word[i];
        w[i + 4] = s.high.word[i];
    }
    /* Moves by constants: an array with run-time indices would be in local memory. */
    if (s.phase & 8)
        for (int i = 0; i < 6; ++i)
            w[i] = w[i + 2];
    if (s.phase & 4)
        for (int i = 0; i < 5; ++i)
            w[i] = w[i + 1];
    words aligned;
    for (int i = 0; i < 4; ++i)
        aligned.word[i] = funnel_shift(w[i], w[i + 1], s.phase % 4 * 8);
    return aligned;
}

template <typename Component>
__device__ inline vector_of<Component>
align(const straddle &s)
{
    return bits_as<vector_of<Component>>(align_words(s));
}

/* How threads share an addition: the first `vectors` threads take a vector each, aligned on c, the next `edges` threads
 * a component each: those before the first vector, `head` of them, and those after the last. Kernels get the addresses
 * of the first vector: computing them in each thread took 1 % of a small addition. */
template <typename Number> struct split_of {
    Number head, vectors, edges;
};
using split = split_of<uint64_t>;
using small_split = split_of<uint32_t>;

inline small_split
small(const split &split)
{
    return {static_cast<uint32_t>(split.head), static_cast<uint32_t>(split.vectors),
            static_cast<uint32_t>(split.edges)};
}

/* `shifted`: some operand is read by two loads a vector, which reach up to one vector beyond it on both sides. To keep
 * them inside the operand, single threads add one vector's worth of components at each end. */
template <typename Component>
inline split
split_components(const void *c, uint64_t n, bool shifted)
{
    constexpr uint64_t SIZE = sizeof(typename Component::element), COUNT = vector_of<Component>::size;
    const uint64_t margin = shifted ? COUNT : 0, head = (16 - phase_of(c)) % 16 / SIZE + margin;
    const uint64_t vectors = n < head + margin ? 0 : (n - head - margin) / COUNT;
    return {vectors ? head : 0, vectors, n - vectors * COUNT}; /* the first vector's address is in the operand */
}

/* The component of a thread that takes one, counted from the first vector. */
template <typename Component, typename Number>
__device__ inline int64_t
edge_at(const split_of<Number> &split, Number edge)
{
    int64_t at = static_cast<int64_t>(edge) - static_cast<int64_t>(split.head);
    if (edge >= split.head)
        at += static_cast<int64_t>(split.vectors) * vector_of<Component>::size;
    return at;
}

#endif
