/* What the precision rungs share: adding float16 and bfloat16 components one at a time, or two in a word. */
#ifndef VECADD_CUDA_LAB_PRECISION_PRECISION_CUH
#define VECADD_CUDA_LAB_PRECISION_PRECISION_CUH

#include "cuda/lab/rung.cuh"

enum { PRECISION_COMPONENTS = 1 << COMPONENT_F16 | 1 << COMPONENT_BF16 };

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

inline uint64_t
threads_for(uint64_t n, uint64_t size)
{
    return n / size + n % size;
}

#endif
