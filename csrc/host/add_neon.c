/* NEON: 16-byte vectors. AArch64 cores turn long runs of ordinary stores into streaming ones by themselves, so ordinary
 * and streaming stores are the same here. */
#if defined(__aarch64__)

#include <arm_neon.h>

typedef uint8x16_t vec;

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
vec_add_f16(vec a, vec b)
{
    const float16x8_t x = vreinterpretq_f16_u8(a), y = vreinterpretq_f16_u8(b);
    const float32x4_t low = vaddq_f32(vcvt_f32_f16(vget_low_f16(x)), vcvt_f32_f16(vget_low_f16(y)));
    const float32x4_t high = vaddq_f32(vcvt_high_f32_f16(x), vcvt_high_f32_f16(y));
    return vreinterpretq_u8_f16(vcombine_f16(vcvt_f16_f32(low), vcvt_f16_f32(high)));
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
