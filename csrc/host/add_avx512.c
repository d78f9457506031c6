/* AVX-512 (F, BW, DQ, VL): 64-byte vectors, one cache line each. */
#if defined(__x86_64__)

#include <immintrin.h>

typedef __m512i vec;

static inline vec
vec_load(const void *source)
{
    return _mm512_loadu_si512(source);
}

static inline void
vec_store(void *target, vec value)
{
    _mm512_storeu_si512(target, value);
}

static inline void
vec_stream(void *target, vec value)
{
    _mm512_stream_si512(target, value);
}

static inline void
vec_fence(void)
{
    _mm_sfence();
}

static inline vec
vec_add_bool(vec a, vec b)
{
    return _mm512_min_epu8(_mm512_or_si512(a, b), _mm512_set1_epi8(1));
}

static inline vec
vec_add_i8(vec a, vec b)
{
    return _mm512_add_epi8(a, b);
}

static inline vec
vec_add_i16(vec a, vec b)
{
    return _mm512_add_epi16(a, b);
}

static inline vec
vec_add_i32(vec a, vec b)
{
    return _mm512_add_epi32(a, b);
}

static inline vec
vec_add_i64(vec a, vec b)
{
    return _mm512_add_epi64(a, b);
}

static inline __m256i
add_f16_half(__m256i a, __m256i b)
{
    const __m512 sum = _mm512_add_ps(_mm512_cvtph_ps(a), _mm512_cvtph_ps(b));
    return _mm512_cvtps_ph(sum, _MM_FROUND_TO_NEAREST_INT);
}

static inline vec
vec_add_f16(vec a, vec b)
{
    const __m256i low = add_f16_half(_mm512_castsi512_si256(a), _mm512_castsi512_si256(b));
    const __m256i high = add_f16_half(_mm512_extracti64x4_epi64(a, 1), _mm512_extracti64x4_epi64(b, 1));
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/* Adds the bfloat16 in the upper halves; their rounded sums are in the upper halves of the result. A NaN's lower half
 * is zero, so that rounding keeps it a NaN. VCVTNEPS2BF16 would flush subnormals. */
static inline vec
add_bf16_upper(vec a, vec b)
{
    const __m512 sum = _mm512_add_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b));
    const vec bits = _mm512_castps_si512(sum);
    const vec odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const vec bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    return _mm512_add_epi32(bits, bias);
}

static inline vec
vec_add_bf16(vec a, vec b)
{
    const vec upper = _mm512_set1_epi32((int)0xffff0000u);
    const vec even = add_bf16_upper(_mm512_slli_epi32(a, 16), _mm512_slli_epi32(b, 16));
    const vec odd = add_bf16_upper(_mm512_and_si512(a, upper), _mm512_and_si512(b, upper));
    return _mm512_or_si512(_mm512_srli_epi32(even, 16), _mm512_and_si512(odd, upper));
}

static inline vec
vec_add_f32(vec a, vec b)
{
    return _mm512_castps_si512(_mm512_add_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b)));
}

static inline vec
vec_add_f64(vec a, vec b)
{
    return _mm512_castpd_si512(_mm512_add_pd(_mm512_castsi512_pd(a), _mm512_castsi512_pd(b)));
}

#include "host/simd.h"

static bool
avx512_supported(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && host_simd_avx2.supported();
}

const struct host_simd host_simd_avx512 = {
    .name = "avx512", .supported = avx512_supported, HOST_SIMD_FUNCTIONS, .narrower = &host_simd_avx2};

#endif
