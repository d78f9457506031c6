/* NEON: 16-byte vectors. AArch64 cores turn long runs of ordinary stores into streaming ones by themselves, so ordinary
 * and streaming stores are the same here. */
#if defined(__aarch64__)

#include <arm_neon.h>

typedef uint8x16_t vec;

static inline vec
vec_load(const void *source)
{
    return vld1q_u8(source);
}

static inline void
vec_store(void *target, vec value)
{
    vst1q_u8(target, value);
}

#define vec_stream vec_store

static inline void
vec_fence(void)
{
}

static inline vec
vec_add_bool(vec a, vec b)
{
    return vminq_u8(vorrq_u8(a, b), vdupq_n_u8(1));
}

static inline vec
vec_add_i8(vec a, vec b)
{
    return vaddq_u8(a, b);
}

static inline vec
vec_add_i16(vec a, vec b)
{
    return vreinterpretq_u8_u16(vaddq_u16(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b)));
}

static inline vec
vec_add_i32(vec a, vec b)
{
    return vreinterpretq_u8_u32(vaddq_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b)));
}

static inline vec
vec_add_i64(vec a, vec b)
{
    return vreinterpretq_u8_u64(vaddq_u64(vreinterpretq_u64_u8(a), vreinterpretq_u64_u8(b)));
}

static inline vec
vec_add_f16(vec a, vec b)
{
    const float16x8_t x = vreinterpretq_f16_u8(a), y = vreinterpretq_f16_u8(b);
    const float32x4_t low = vaddq_f32(vcvt_f32_f16(vget_low_f16(x)), vcvt_f32_f16(vget_low_f16(y)));
    const float32x4_t high = vaddq_f32(vcvt_high_f32_f16(x), vcvt_high_f32_f16(y));
    return vreinterpretq_u8_f16(vcombine_f16(vcvt_f16_f32(low), vcvt_f16_f32(high)));
}

/* Adds the bfloat16 in the upper halves; their rounded sums are in the upper halves of the result. A NaN's lower half
 * is zero, so that rounding keeps it a NaN. */
static inline uint32x4_t
add_bf16_upper(uint32x4_t a, uint32x4_t b)
{
    const float32x4_t sum = vaddq_f32(vreinterpretq_f32_u32(a), vreinterpretq_f32_u32(b));
    const uint32x4_t bits = vreinterpretq_u32_f32(sum);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t bias = vaddq_u32(odd, vdupq_n_u32(0x7fff));
    return vaddq_u32(bits, bias);
}

static inline vec
vec_add_bf16(vec a, vec b)
{
    const uint32x4_t x = vreinterpretq_u32_u8(a), y = vreinterpretq_u32_u8(b), upper = vdupq_n_u32(0xffff0000u);
    const uint32x4_t even = add_bf16_upper(vshlq_n_u32(x, 16), vshlq_n_u32(y, 16));
    const uint32x4_t odd = add_bf16_upper(vandq_u32(x, upper), vandq_u32(y, upper));
    return vreinterpretq_u8_u32(vorrq_u32(vshrq_n_u32(even, 16), vandq_u32(odd, upper)));
}

static inline vec
vec_add_f32(vec a, vec b)
{
    return vreinterpretq_u8_f32(vaddq_f32(vreinterpretq_f32_u8(a), vreinterpretq_f32_u8(b)));
}

static inline vec
vec_add_f64(vec a, vec b)
{
    return vreinterpretq_u8_f64(vaddq_f64(vreinterpretq_f64_u8(a), vreinterpretq_f64_u8(b)));
}

#include "base/fpenv.h"
#include "host/simd_body.h"

/* Rounds to nearest even under any rounding mode. NEON's conversion to float16 follows the caller's mode; under other
 * modes than nearest the portable loop adds. */
static void
add_f16_to_nearest(const void *a, const void *b, void *c, size_t n)
{
    (fpenv_rounds_to_nearest(fpenv_get()) ? add_f16 : host_simd_c.add[COMPONENT_F16])(a, b, c, n);
}

static void
stream_f16_to_nearest(const void *a, const void *b, void *c, size_t n)
{
    (fpenv_rounds_to_nearest(fpenv_get()) ? stream_f16 : host_simd_c.stream[COMPONENT_F16])(a, b, c, n);
}

static bool
neon_supported(void)
{
    return true;
}

/* The table's functions for float16. */
#define add_f16    add_f16_to_nearest
#define stream_f16 stream_f16_to_nearest

const struct host_simd host_simd_neon = {.name = "neon", .supported = neon_supported, HOST_SIMD_FUNCTIONS};

#endif
