/* AVX2 and F16C: 32-byte vectors. */
#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

typedef __m256i vec;

static inline vec
vec_load(const void *source)
{
    return _mm256_loadu_si256(source);
}

static inline void
vec_store(void *target, vec value)
{
    _mm256_storeu_si256(target, value);
}

static inline void
vec_stream(void *target, vec value)
{
    _mm256_stream_si256(target, value);
}

/* For float16, as in add_avx512.c. */
#define HALF_VECTORS
typedef __m128i half;

static inline half
half_load(const void *source)
{
    return _mm_loadu_si128(source);
}

static inline void
half_store(void *target, half value)
{
    _mm_storeu_si128(target, value);
}

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

static inline vec
vec_add_i8(vec a, vec b)
{
    return _mm256_add_epi8(a, b);
}

static inline vec
vec_add_i16(vec a, vec b)
{
    return _mm256_add_epi16(a, b);
}

static inline vec
vec_add_i32(vec a, vec b)
{
    return _mm256_add_epi32(a, b);
}

static inline vec
vec_add_i64(vec a, vec b)
{
    return _mm256_add_epi64(a, b);
}

static inline half
vec_add_f16(half a, half b)
{
    const __m256 sum = _mm256_add_ps(_mm256_cvtph_ps(a), _mm256_cvtph_ps(b));
    return _mm256_cvtps_ph(sum, _MM_FROUND_TO_NEAREST_INT);
}

/* Adds the bfloat16 in the upper halves; their rounded sums are in the upper halves of the result. A NaN's lower half
 * is zero, so that rounding keeps it a NaN. */
static inline vec
add_bf16_upper(vec a, vec b)
{
    const __m256 sum = _mm256_add_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
    const vec bits = _mm256_castps_si256(sum);
    const vec odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const vec bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    return _mm256_add_epi32(bits, bias);
}

static inline vec
vec_add_bf16(vec a, vec b)
{
    const vec upper = _mm256_set1_epi32((int)0xffff0000u);
    const vec even = add_bf16_upper(_mm256_slli_epi32(a, 16), _mm256_slli_epi32(b, 16));
    const vec odd = add_bf16_upper(_mm256_and_si256(a, upper), _mm256_and_si256(b, upper));
    return _mm256_or_si256(_mm256_srli_epi32(even, 16), _mm256_and_si256(odd, upper));
}

static inline vec
vec_add_f32(vec a, vec b)
{
    return _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b)));
}

static inline vec
vec_add_f64(vec a, vec b)
{
    return _mm256_castpd_si256(_mm256_add_pd(_mm256_castsi256_pd(a), _mm256_castsi256_pd(b)));
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
