/* The vectors of a level and their arithmetic, in GNU C, which gcc and clang compile to the level's instructions. A
 * level's file (add_avx512.c, ...) defines vec, a register full of components of any type, and includes this file. */
#ifndef VECADD_HOST_SIMD_VECTORS_H
#define VECADD_HOST_SIMD_VECTORS_H

#include <stdint.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

typedef uint8_t vec_u8 __attribute__((vector_size(sizeof(vec))));
typedef uint16_t vec_u16 __attribute__((vector_size(sizeof(vec))));
typedef uint32_t vec_u32 __attribute__((vector_size(sizeof(vec))));
typedef int32_t vec_i32 __attribute__((vector_size(sizeof(vec))));
typedef uint64_t vec_u64 __attribute__((vector_size(sizeof(vec))));
typedef float vec_f32 __attribute__((vector_size(sizeof(vec))));
typedef double vec_f64 __attribute__((vector_size(sizeof(vec))));

/* `condition` is a comparison of vectors: all ones or all zeros in each component. */
static inline vec_u32
vec_select(vec_u32 condition, vec_u32 yes, vec_u32 no)
{
    return (condition & yes) | (~condition & no);
}

static inline vec
vec_add_i8(vec a, vec b)
{
    return (vec)((vec_u8)a + (vec_u8)b);
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

/* Adds the bfloat16 in the upper halves; their rounded sums are in the upper halves of the result. A NaN's lower half
 * is zero, so that rounding keeps it a NaN. AVX-512's VCVTNEPS2BF16 would flush subnormals. */
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

#endif
