/* All inline PTX. Each function has a C++ version for tests on the CPU (VECADD_DOUBLE: the tests' replacement for the
 * CUDA runtime). Additions of two packed 16-bit floats round once to nearest even and keep subnormals. Loads hint the
 * L2 what to keep; the CPU version reports the hints to the double. */
#ifndef VECADD_CUDA_PTX_CUH
#define VECADD_CUDA_PTX_CUH

#include <cuda_runtime_api.h>
#include <stdint.h>

#if VECADD_DOUBLE
#include "kernel_on_cpu.h"
#endif

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

/* The nearest bfloat16, ties to even, in the lower half; a NaN stays a NaN. Rounding a sum of two bfloat16 to float32
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
    /* bfloat16 addition needs sm_90; a * 1 + b rounds once as well. */
    uint32_t sum;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(0x3f803f80u), "r"(b));
    return sum;
#else
    return bf16_nearest(bf16_high(a) + bf16_high(b)) << 16 | bf16_nearest(bf16_low(a) + bf16_low(b));
#endif
}

__device__ inline float
f16_value(uint16_t half)
{
#if VECADD_DOUBLE
    return bits_as<_Float16>(half);
#else
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
#endif
}

/* The nearest float16, ties to even; a NaN stays a NaN. */
__device__ inline uint16_t
f16_nearest(float x)
{
#if VECADD_DOUBLE
    return bits_as<uint16_t>(static_cast<_Float16>(x));
#else
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
    return half;
#endif
}

__device__ inline uint16_t
f16_nearest(double x)
{
#if VECADD_DOUBLE
    return bits_as<uint16_t>(static_cast<_Float16>(x));
#else
    uint16_t half;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(half) : "d"(x));
    return half;
#endif
}

/* The 32 bits of `high:low` from bit `shift` on; 0 <= shift < 32. */
__device__ inline uint32_t
funnel_shift(uint32_t low, uint32_t high, unsigned shift)
{
#if VECADD_DOUBLE
    return static_cast<uint32_t>((static_cast<uint64_t>(high) << 32 | low) >> shift);
#else
    return __funnelshift_r(low, high, shift);
#endif
}

enum { L2_LINE = 128 }; /* bytes per applypriority */

struct alignas(16) words {
    uint32_t word[4];
};

/* Loads 16 bytes if `inside`; else zeros. Under a predicate: a branch around the loads would first wait for the
 * comparison. */
__device__ inline words
load_if(bool inside, const words *from)
{
#if VECADD_DOUBLE
    return inside ? *from : words{};
#else
    words loaded;
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "setp.ne.u32 p, %5, 0;\n\t"
                 "mov.b32 %0, 0;\n\t"
                 "mov.b32 %1, 0;\n\t"
                 "mov.b32 %2, 0;\n\t"
                 "mov.b32 %3, 0;\n\t"
                 "@p ld.global.v4.u32 {%0, %1, %2, %3}, [%4];\n\t"
                 "}"
                 : "=&r"(loaded.word[0]), "=&r"(loaded.word[1]), "=&r"(loaded.word[2]), "=&r"(loaded.word[3])
                 : "l"(__cvta_generic_to_global(from)), "r"(static_cast<unsigned>(inside))
                 : "memory");
    return loaded;
#endif
}

/* Loads 16 bytes, and asks the L2 to evict them last: until demote_line() they outlive plainly loaded lines. On sm_90,
 * where it was measured; elsewhere a plain load. The instruction exists from sm_80 on, but machine code for five more
 * architectures would add 27 KB to the wheel. */
__device__ inline words
load_evict_last(const words *from)
{
#if VECADD_DOUBLE
    l2_keeps_last(from);
    return *from;
#elif __CUDA_ARCH__ == 900
    uint64_t policy;
    words loaded;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(loaded.word[0]), "=r"(loaded.word[1]), "=r"(loaded.word[2]), "=r"(loaded.word[3])
                 : "l"(__cvta_generic_to_global(from)), "l"(policy));
    return loaded;
#else
    return *from;
#endif
}

/* Makes a line of the L2 an ordinary one again. `line` is aligned to L2_LINE. */
__device__ inline void
demote_line(const void *line)
{
#if VECADD_DOUBLE
    l2_demotes(line);
#elif __CUDA_ARCH__ == 900
    asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(__cvta_generic_to_global(line)) : "memory");
#else
    (void)line;
#endif
}

/* For kernels launched with the programmatic attribute: waits until the preceding kernels have ended and their writes
 * are visible. A thread must not load, store or exit before it. Returns at once without the attribute, and below sm_90.
 */
__device__ inline void
wait_for_prerequisites()
{
#if VECADD_DOUBLE
    wait_for_prerequisites_on_cpu();
#elif __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#endif
