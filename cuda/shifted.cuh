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

/* The two aligned vectors that hold a misaligned one; equal if the operand is aligned. */
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

#endif
