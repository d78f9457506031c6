/* For any instruction set: 16-byte vectors of GNU C, which gcc and clang compile to the processor's instructions.
 * Explicit vectors rather than loops, because a compiler that vectorises the float16 conversions by itself may evaluate
 * both sides of a choice, and so raise flags that no element's addition raises. */
#include <stdint.h>
#include <string.h>

typedef uint8_t vec __attribute__((vector_size(16)));
typedef uint16_t vec_u16 __attribute__((vector_size(16)));
typedef uint32_t vec_u32 __attribute__((vector_size(16)));
typedef int32_t vec_i32 __attribute__((vector_size(16)));
typedef uint64_t vec_u64 __attribute__((vector_size(16)));
typedef float vec_f32 __attribute__((vector_size(16)));
typedef double vec_f64 __attribute__((vector_size(16)));

static inline vec
vec_load(const void *source)
{
    vec value;
    memcpy(&value, source, sizeof value);
    return value;
}

static inline void
vec_store(void *target, vec value)
{
    memcpy(target, &value, sizeof value);
}

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

static inline vec
vec_add_i8(vec a, vec b)
{
    return a + b;
}

static inline vec
vec_add_i16(vec a, vec b)
{
    return (vec)((vec_u16)a + (vec_u16)b);
}

static inline vec
vec_add_i32(vec a, vec b)
{
    return (vec)((vec_u32)a + (vec_u32)b);
}

static inline vec
vec_add_i64(vec a, vec b)
{
    return (vec)((vec_u64)a + (vec_u64)b);
}

/* `condition` is a comparison of vectors: all ones or all zeros in each component. */
static inline vec_u32
select(vec_i32 condition, vec_u32 yes, vec_u32 no)
{
    return ((vec_u32)condition & yes) | (~(vec_u32)condition & no);
}

/* Converts float16 bits, one a component, to float32. A signalling NaN stays signalling, so that the addition raises
 * invalid. */
static inline vec_f32
float_from_f16(vec_u32 half)
{
    const vec_u32 sign = (half & 0x8000) << 16, exponent = half & 0x7c00, mantissa = half & 0x3ff;
    const vec_u32 rebias = select((vec_i32)(exponent == 0x7c00), (vec_u32){0} + (255 - 31), (vec_u32){0} + (127 - 15));
    const vec_u32 normal = ((half & 0x7fff) << 13) + (rebias << 23);
    const vec_u32 subnormal = (vec_u32)(__builtin_convertvector((vec_i32)mantissa, vec_f32) * 0x1p-24f);
    return (vec_f32)(sign | select((vec_i32)(exponent == 0), subnormal, normal));
}

/* Converts float32 to float16 bits, to nearest even; raises overflow if a finite number becomes infinite. Below 2^-14
 * it is right only for sums of two float16: those are multiples of 2^-24 and need no rounding. */
static inline vec_u32
f16_from_float(vec_f32 sum)
{
    const vec_u32 magnitude = (vec_u32)sum & 0x7fffffff, sign = ((vec_u32)sum >> 16) & 0x8000;
    const vec_i32 overflows = (magnitude >= 0x477ff000) & (magnitude < 0x7f800000);
    const vec_u32 factor = select(overflows, (vec_u32){0} + 0x7f000000, (vec_u32){0} + 0x3f800000); /* 2^127 or 1 */
    const vec_u32 number = (vec_u32)((vec_f32)magnitude * (vec_f32)factor);

    const vec_i32 is_small = (vec_i32)(magnitude < 0x38800000);
    const vec_f32 small = (vec_f32)(magnitude & (vec_u32)is_small);
    const vec_u32 subnormal = (vec_u32) __builtin_convertvector(small * 0x1p24f, vec_i32);
    const vec_u32 normal = (number - (112u << 23) + 0xfff + ((number >> 13) & 1)) >> 13;
    const vec_u32 finite = select(is_small, subnormal, normal);
    const vec_u32 special = select((vec_i32)(number > 0x7f800000), (vec_u32){0} + 0x7e00, (vec_u32){0} + 0x7c00);
    return sign | select((vec_i32)(number >= 0x477ff000), special, finite);
}

static inline vec
vec_add_f16(vec a, vec b)
{
    const vec_u32 x = (vec_u32)a, y = (vec_u32)b;
    const vec_u32 even = f16_from_float(float_from_f16(x & 0xffff) + float_from_f16(y & 0xffff));
    const vec_u32 odd = f16_from_float(float_from_f16(x >> 16) + float_from_f16(y >> 16));
    return (vec)(even | odd << 16);
}

/* Adds the bfloat16 in the upper halves; their rounded sums are in the upper halves of the result. A NaN's lower half
 * is zero, so that rounding keeps it a NaN. */
static inline vec_u32
add_bf16_upper(vec_u32 a, vec_u32 b)
{
    const vec_u32 bits = (vec_u32)((vec_f32)a + (vec_f32)b);
    return bits + ((bits >> 16) & 1) + 0x7fff;
}

static inline vec
vec_add_bf16(vec a, vec b)
{
    const vec_u32 x = (vec_u32)a, y = (vec_u32)b;
    const vec_u32 even = add_bf16_upper(x << 16, y << 16);
    const vec_u32 odd = add_bf16_upper(x & 0xffff0000, y & 0xffff0000);
    return (vec)(even >> 16 | (odd & 0xffff0000));
}

static inline vec
vec_add_f32(vec a, vec b)
{
    return (vec)((vec_f32)a + (vec_f32)b);
}

static inline vec
vec_add_f64(vec a, vec b)
{
    return (vec)((vec_f64)a + (vec_f64)b);
}

#include "host/simd_body.h"

static bool
c_supported(void)
{
    return true;
}

const struct host_simd host_simd_c = {.name = "c", .supported = c_supported, HOST_SIMD_FUNCTIONS};
