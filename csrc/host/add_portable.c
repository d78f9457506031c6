/* For any instruction set: 16-byte vectors of GNU C, which gcc and clang compile to the processor's instructions.
 * Explicit vectors rather than loops, because a compiler that vectorises the float16 conversions by itself may evaluate
 * both sides of a choice, and so raise flags that no element's addition raises. */
#include <stdint.h>

typedef uint8_t vec __attribute__((vector_size(16)));

#include "host/simd_vectors.h"

#define vec_stream vec_store

static inline void
vec_fence(void)
{
}

static inline vec
vec_add_bool(vec a, vec b)
{
    return (vec)((a | b) != 0) & 1;
}

/* Converts float16 bits, one a component, to float32. A signalling NaN stays signalling, so that the addition raises
 * invalid. */
static inline vec_f32
float_from_f16(vec_u32 half)
{
    const vec_u32 sign = (half & 0x8000) << 16, exponent = half & 0x7c00, mantissa = half & 0x3ff;
    const vec_u32 rebias =
        vec_select((vec_u32)(exponent == 0x7c00), (vec_u32){0} + (255 - 31), (vec_u32){0} + (127 - 15));
    const vec_u32 normal = ((half & 0x7fff) << 13) + (rebias << 23);
    const vec_u32 subnormal = (vec_u32)(__builtin_convertvector((vec_i32)mantissa, vec_f32) * 0x1p-24f);
    return (vec_f32)(sign | vec_select((vec_u32)(exponent == 0), subnormal, normal));
}

/* Converts float32 to float16 bits, to nearest even; raises overflow if a finite number becomes infinite. Below 2^-14
 * it is right only for sums of two float16: those are multiples of 2^-24 and need no rounding. */
static inline vec_u32
f16_from_float(vec_f32 sum)
{
    const vec_u32 magnitude = (vec_u32)sum & 0x7fffffff, sign = ((vec_u32)sum >> 16) & 0x8000;
    const vec_u32 overflows = (vec_u32)((magnitude >= 0x477ff000) & (magnitude < 0x7f800000));
    const vec_u32 factor = vec_select(overflows, (vec_u32){0} + 0x7f000000, (vec_u32){0} + 0x3f800000); /* 2^127 or 1 */
    const vec_u32 number = (vec_u32)((vec_f32)magnitude * (vec_f32)factor);

    const vec_u32 is_small = (vec_u32)(magnitude < 0x38800000);
    const vec_f32 small = (vec_f32)(magnitude & is_small);
    const vec_u32 subnormal = (vec_u32) __builtin_convertvector(small * 0x1p24f, vec_i32);
    const vec_u32 normal = (number - (112u << 23) + 0xfff + ((number >> 13) & 1)) >> 13;
    const vec_u32 finite = vec_select(is_small, subnormal, normal);
    const vec_u32 special = vec_select((vec_u32)(number > 0x7f800000), (vec_u32){0} + 0x7e00, (vec_u32){0} + 0x7c00);
    return sign | vec_select((vec_u32)(number >= 0x477ff000), special, finite);
}

static inline vec
vec_add_f16(vec a, vec b)
{
    const vec_u32 x = (vec_u32)a, y = (vec_u32)b;
    const vec_u32 even = f16_from_float(float_from_f16(x & 0xffff) + float_from_f16(y & 0xffff));
    const vec_u32 odd = f16_from_float(float_from_f16(x >> 16) + float_from_f16(y >> 16));
    return (vec)(even | odd << 16);
}

#include "host/simd_body.h"

static bool
c_supported(void)
{
    return true;
}

const struct host_simd host_simd_c = {.name = "c", .supported = c_supported, HOST_SIMD_FUNCTIONS};
