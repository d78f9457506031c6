/* All inline PTX, each with a C++ twin for the CPU: two 16-bit floating-point numbers a word, added with one rounding
 * to nearest even, subnormals kept. */
#ifndef VECADD_PTX_CUH
#define VECADD_PTX_CUH

#include <cuda_runtime_api.h>
#include <stdint.h>

/* The value's bytes as another type of the same size. */
template <typename To, typename From>
__device__ inline To
bits_as(From from)
{
    static_assert(sizeof(To) == sizeof(From), "bits_as keeps the size");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}

__device__ inline uint32_t
add_f16x2(uint32_t a, uint32_t b)
{
#if VECADD_DOUBLE
    const auto half = [](uint32_t word) { return bits_as<_Float16>(static_cast<uint16_t>(word)); };
    const auto sum = [half](uint32_t x, uint32_t y) -> uint32_t {
        return bits_as<uint16_t>(_Float16(half(x) + half(y)));
    };
    return sum(a >> 16, b >> 16) << 16 | sum(a, b);
#else
    uint32_t sum;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
#endif
}

/* bfloat16 is the upper half of a float32. */
__device__ inline float
bf16_low(uint32_t word)
{
    return bits_as<float>(word << 16);
}

__device__ inline float
bf16_high(uint32_t word)
{
    return bits_as<float>(word & 0xffff0000u);
}

/* The nearest bfloat16, ties to even, in the lower half; a NaN stays one. Rounding a sum of two bfloat16 to float32
 * first is harmless: 24 bits are at least 2 * 8 + 2. */
__device__ inline uint32_t
bf16_nearest(float x)
{
    const uint32_t word = bits_as<uint32_t>(x);
    if ((word & 0x7fffffffu) > 0x7f800000u)
        return word >> 16 | 0x40u;
    return (word + 0x7fffu + (word >> 16 & 1u)) >> 16;
}

__device__ inline uint32_t
add_bf16x2(uint32_t a, uint32_t b)
{
#if __CUDA_ARCH__ >= 900
    uint32_t sum;
    asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
#elif __CUDA_ARCH__ >= 800
    /* No addition before sm_90; a * 1 + b rounds once as well. */
    uint32_t sum;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(0x3f803f80u), "r"(b));
    return sum;
#else
    return bf16_nearest(bf16_high(a) + bf16_high(b)) << 16 | bf16_nearest(bf16_low(a) + bf16_low(b));
#endif
}

/* 32 bits of `high:low` from bit `shift` on; 0 <= shift < 32. */
__device__ inline uint32_t
funnel_shift(uint32_t low, uint32_t high, unsigned shift)
{
#if VECADD_DOUBLE
    return static_cast<uint32_t>((static_cast<uint64_t>(high) << 32 | low) >> shift);
#else
    return __funnelshift_r(low, high, shift);
#endif
}

/* Clock cycles of this multiprocessor. */
__device__ inline int64_t
cycle_counter()
{
#if VECADD_DOUBLE
    static thread_local int64_t cycles;
    return cycles += 1000;
#else
    return clock64();
#endif
}

#endif
