/* AVX2 and F16C: 32-byte vectors. */
#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

typedef __m256i vec;

static inline void
vec_stream(void *target, vec value)
{
    _mm256_stream_si256(target, value);
}

/* For float16, as in add_avx512.c. */
#define HALF_VECTORS
typedef __m128i half;

static inline void
half_stream(void *target, half value)
{
    _mm_stream_si128(target, value);
}

static inline void
vec_fence(void)
{
    _mm_sfence();
}

static inline vec
vec_add_bool(vec a, vec b)
{
    return _mm256_min_epu8(_mm256_or_si256(a, b), _mm256_set1_epi8(1));
}

static inline half
vec_add_f16(half a, half b)
{
    const __m256 sum = _mm256_add_ps(_mm256_cvtph_ps(a), _mm256_cvtph_ps(b));
    return _mm256_cvtps_ph(sum, _MM_FROUND_TO_NEAREST_INT);
}

#include "host/simd_body.h"

/* clang 14 does not know __builtin_cpu_supports("f16c"). */
static bool
f16c_supported(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool
avx2_supported(void)
{
    return __builtin_cpu_supports("avx2") && f16c_supported();
}

const struct host_simd host_simd_avx2 = {.name = "avx2", .supported = avx2_supported, HOST_SIMD_FUNCTIONS};

#endif
