/* float8_e4m3fn: 4 bits of exponent, 3 of fraction, no infinity, one NaN of either sign. */
#ifndef VECADD_CUDA_FLOAT8_CUH
#define VECADD_CUDA_FLOAT8_CUH

#include <stdint.h>

#include "cuda/ptx.cuh"

/* The value as a float, exactly; a NaN stays a NaN. */
__device__ inline float
e4m3fn_value(uint8_t bits)
{
    const uint32_t sign = (bits & 0x80u) << 24, magnitude = bits & 0x7fu;
    if (magnitude == 0x7f)
        return bits_as<float>(sign | 0x7fc00000u);
    return bits_as<float>(sign | bits_as<uint32_t>(bits_as<float>(magnitude << 20) * 0x1p120f));
}

/* Rounds to nearest, ties to even; gives a NaN above 464, halfway from the largest number, 448, to the next multiple,
 * 480. */
__device__ inline uint8_t
e4m3fn_nearest(float x)
{
    const uint32_t word = bits_as<uint32_t>(x), magnitude = word & 0x7fffffffu, sign = word >> 24 & 0x80u;
    uint32_t number = 0x7f;
    if (magnitude < 0x3c800000u) /* 2^-6, the least normal number: adding 2^14 rounds to a multiple of 2^-9 */
        number = bits_as<uint32_t>(bits_as<float>(magnitude) + 0x1p14f) - 0x46800000u;
    else if (magnitude <= 0x43e80000u)
        number = ((magnitude + 0x7ffffu + (magnitude >> 20 & 1u)) >> 20) - (120u << 3);
    return static_cast<uint8_t>(sign | number);
}

/* Converts the even bytes of a word to float16 numbers of 2^-8 times their value, by moving bits; subnormals stay
 * subnormal. */
__device__ inline uint32_t
e4m3fn_as_f16x2(uint32_t word)
{
    return (word & 0x007f007fu) << 7 | (word & 0x00800080u) << 8;
}

/* Rounds 2^8 times each float16 to e4m3fn, ties to even, into the even bytes. The earlier rounding of the sum to
 * float16 is harmless: 11 bits are at least 2 * 4 + 2, and sums below the least normal number are exact. */
__device__ inline uint32_t
e4m3fn_from_f16x2(uint32_t halves)
{
    const uint32_t magnitude = halves & 0x7fff7fffu;
    const uint32_t number = (magnitude + 0x003f003fu + (magnitude >> 7 & 0x00010001u)) >> 7 & 0x00ff00ffu;
    return ((number | (number >> 7 & 0x00010001u) * 0x7f) & 0x007f007fu) | (halves >> 8 & 0x00800080u);
}

/* Sets the top bit of each byte that is a NaN. */
__device__ inline uint32_t
e4m3fn_nans(uint32_t word)
{
    return ((word & 0x7f7f7f7fu) + 0x01010101u) & 0x80808080u;
}

/* A NaN sum has a's sign if a is a NaN, else sign 0, as in ml_dtypes. */
__device__ inline uint32_t
add_e4m3fnx4(uint32_t a, uint32_t b)
{
    const uint32_t even = e4m3fn_from_f16x2(add_f16x2(e4m3fn_as_f16x2(a), e4m3fn_as_f16x2(b)));
    const uint32_t odd = e4m3fn_from_f16x2(add_f16x2(e4m3fn_as_f16x2(a >> 8), e4m3fn_as_f16x2(b >> 8)));
    const uint32_t first = e4m3fn_nans(a), any = first | e4m3fn_nans(b), nan = any - (any >> 7);
    return ((even | odd << 8) & ~(any | nan)) | nan | (first & a);
}

#endif
