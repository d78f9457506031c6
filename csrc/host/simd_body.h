/* What all instruction sets share. A level's file (add_avx512.c, ...) defines
 *
 *     vec                       a register full of components of any type
 *     vec_stream, vec_fence     a non-temporal store to a multiple of sizeof(vec), and the fence that orders it
 *     vec_add_bool, _f16        the additions that are quicker by its own instructions, with NumPy's values and flags
 *
 * then includes this file and defines its struct host_simd with HOST_SIMD_FUNCTIONS. With HALF_VECTORS it defines half
 * and half_stream too, a register of half the length, and adds halves where it likes: the type of vec_add_f16 tells. */
#ifndef VECADD_HOST_SIMD_BODY_H
#define VECADD_HOST_SIMD_BODY_H

#include <stdint.h>
#include <string.h>

#include "host/simd.h"
#include "host/simd_vectors.h"

/* float8_e4m3fn for every instruction set: 4 bits of exponent, 3 of fraction, no infinity, one NaN of either sign.
 * Processors have no float8 addition. This code counts numbers in units of 2^-9, the least subnormal: a float32 has
 * every sum of two exactly (18 bits), so that the only rounding is the one below, which raises no flag. */
enum {
    E4M3FN_NAN = 0x7f,
    E4M3FN_REBIAS = 129 << 3, /* added to an exponent field of bias 7, in units of 2^-9, gives float32's, bias 127 */
    E4M3FN_LEAST_NORMAL = 8,  /* both in units of 2^-9 and as bits */
    FLOAT_OF_LEAST_NORMAL = 0x41000000, /* 8.0f */
    HALF_OF_LAST_PLACE = (1 << 19) - 1, /* of the 20 extra bits of a float32's fraction, to round ties to even */
};

/* The low byte of each word, in units of 2^-9; a NaN gives the finite number that its bits would be. */
static inline vec_f32
e4m3fn_units(vec_u32 x)
{
    const vec_u32 magnitude = x & 0x7f, normal = (magnitude + E4M3FN_REBIAS) << 20;
    const vec_u32 subnormal = (vec_u32) __builtin_convertvector((vec_i32)magnitude, vec_f32);
    const vec_u32 is_subnormal = (vec_u32)(magnitude < E4M3FN_LEAST_NORMAL);
    return (vec_f32)((x & 0x80) << 24 | vec_select(is_subnormal, subnormal, normal));
}

/* Rounds to nearest even, into the low byte of each word. Above 464 the result is a NaN; 448 is the largest number. */
static inline vec_u32
e4m3fn_nearest(vec_f32 units)
{
    const vec_u32 bits = (vec_u32)units, magnitude = bits & 0x7fffffff;
    const vec_u32 normal = ((magnitude + HALF_OF_LAST_PLACE + (magnitude >> 20 & 1)) >> 20) - E4M3FN_REBIAS;
    const vec_u32 subnormal = (vec_u32) __builtin_convertvector((vec_f32)magnitude, vec_i32);
    const vec_u32 number = vec_select((vec_u32)(magnitude < FLOAT_OF_LEAST_NORMAL), subnormal, normal);
    return (bits >> 24 & 0x80) | vec_select((vec_u32)(number < E4M3FN_NAN), number, (vec_u32){0} + E4M3FN_NAN);
}

/* Sets the top bit of each byte that is a NaN. */
static inline vec_u32
e4m3fn_nans(vec_u32 x)
{
    return ((x & 0x7f7f7f7f) + 0x01010101) & 0x80808080;
}

/* A NaN sum has a's sign if a is a NaN, else sign 0, as in ml_dtypes. */
static inline vec
vec_add_e4m3fn(vec a, vec b)
{
    const vec_u32 x = (vec_u32)a, y = (vec_u32)b;
    vec_u32 sum = {0};
    for (int shift = 0; shift < 32; shift += 8)
        sum |= e4m3fn_nearest(e4m3fn_units(x >> shift & 0xff) + e4m3fn_units(y >> shift & 0xff)) << shift;
    const vec_u32 first = e4m3fn_nans(x), any = first | e4m3fn_nans(y), nan = any - (any >> 7);
    return (vec)(vec_select(any | nan, nan, sum) | (first & x));
}

/* Keeps the compiler from reordering stores across it. gcc 12 stores the four 32-byte vectors of an iteration as 1, 3,
 * 0, 2, back and forth between two cache lines: 9.2 us at 2^16 float32, in L2; 0, 1, 2, 3 takes 6.9. */
ALWAYS_INLINE void
in_this_order(void)
{
    __asm__ __volatile__("" ::: "memory");
}

#define VECTOR        vec
#define OF_VECTOR(of) vec_##of
#include "host/simd_loops.h"

#ifdef HALF_VECTORS
#define VECTOR        half
#define OF_VECTOR(of) half_##of
#include "host/simd_loops.h"
#define OF_SAME(add, of) _Generic(add, vec_adder : vec_##of, half_adder : half_##of)
#else
#define OF_SAME(add, of) vec_##of
#endif

/* Adds arrays by the vectors that `add` takes, `store` being one of `store` and `stream`. */
#define ADD_ARRAY(add, store, one, a, b, c, bytes)                                                                     \
    (OF_SAME(add, add_array)(add, OF_SAME(add, store), one, a, b, c, bytes))

#define DEFINE_COMPONENT(COMPONENT, component, bytes, largest)                                                         \
    static void add_##component(const void *a, const void *b, void *c, size_t n)                                       \
    {                                                                                                                  \
        ADD_ARRAY(vec_add_##component, store, false, a, b, c, (bytes)*n);                                              \
    }                                                                                                                  \
    static void add_one_##component(const void *a, const void *b, void *c, size_t n)                                   \
    {                                                                                                                  \
        ADD_ARRAY(vec_add_##component, store, true, a, b, c, (bytes)*n);                                               \
    }                                                                                                                  \
    static void stream_##component(const void *a, const void *b, void *c, size_t n)                                    \
    {                                                                                                                  \
        ADD_ARRAY(vec_add_##component, stream, false, a, b, c, (bytes)*n);                                             \
        vec_fence();                                                                                                   \
    }                                                                                                                  \
    static void stream_one_##component(const void *a, const void *b, void *c, size_t n)                                \
    {                                                                                                                  \
        ADD_ARRAY(vec_add_##component, stream, true, a, b, c, (bytes)*n);                                              \
        vec_fence();                                                                                                   \
    }

EACH_COMPONENT(DEFINE_COMPONENT)

#define ADD_ROW(ID, name, ...)        [COMPONENT_##ID] = add_##name,
#define STREAM_ROW(ID, name, ...)     [COMPONENT_##ID] = stream_##name,
#define ADD_ONE_ROW(ID, name, ...)    [COMPONENT_##ID] = add_one_##name,
#define STREAM_ONE_ROW(ID, name, ...) [COMPONENT_##ID] = stream_one_##name,
#define HOST_SIMD_FUNCTIONS                                                                                            \
    .add = {EACH_COMPONENT(ADD_ROW)}, .stream = {EACH_COMPONENT(STREAM_ROW)},                                          \
    .add_one = {EACH_COMPONENT(ADD_ONE_ROW)}, .stream_one = {EACH_COMPONENT(STREAM_ONE_ROW)}

#endif
