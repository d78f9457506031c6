/* float8_e4m3fn for every instruction set: 4 bits of exponent, 3 of fraction, no infinity, one NaN of either sign.
 * Processors have no float8 addition. This code counts numbers in units of 2^-9, the least subnormal: a float32 holds
 * every sum of two exactly (18 bits), so that the only rounding is the one below, which raises no flag. The including
 * file defines `vec`; GNU C's vectors of its size compile to its instruction set. */
#ifndef VECADD_HOST_FLOAT8_H
#define VECADD_HOST_FLOAT8_H

#include <stdint.h>

typedef uint32_t float8_words __attribute__((vector_size(sizeof(vec))));
typedef int32_t float8_ints __attribute__((vector_size(sizeof(vec))));
typedef float float8_floats __attribute__((vector_size(sizeof(vec))));

enum {
    E4M3FN_NAN = 0x7f,
    E4M3FN_REBIAS = 129 << 3, /* added to an exponent field of bias 7, in units of 2^-9, gives float32's, bias 127 */
    E4M3FN_LEAST_NORMAL = 8,  /* both in units of 2^-9 and as bits */
    FLOAT_OF_LEAST_NORMAL = 0x41000000, /* 8.0f */
    HALF_OF_LAST_PLACE = (1 << 19) - 1, /* of the 20 extra bits of a float32's fraction, to round ties to even */
};

static inline float8_words
float8_select(float8_words condition, float8_words yes, float8_words no)
{
    return (condition & yes) | (~condition & no);
}

/* The low byte of each word, in units of 2^-9; a NaN gives the finite number that its bits would be. */
static inline float8_floats
e4m3fn_units(float8_words x)
{
    const float8_words magnitude = x & 0x7f, normal = (magnitude + E4M3FN_REBIAS) << 20;
    const float8_words subnormal = (float8_words) __builtin_convertvector((float8_ints)magnitude, float8_floats);
    const float8_words is_subnormal = (float8_words)(magnitude < E4M3FN_LEAST_NORMAL);
    return (float8_floats)((x & 0x80) << 24 | float8_select(is_subnormal, subnormal, normal));
}

/* Rounds to nearest even, into the low byte of each word. Above 464 the result is a NaN; 448 is the largest number. */
static inline float8_words
e4m3fn_nearest(float8_floats units)
{
    const float8_words bits = (float8_words)units, magnitude = bits & 0x7fffffff;
    const float8_words normal = ((magnitude + HALF_OF_LAST_PLACE + (magnitude >> 20 & 1)) >> 20) - E4M3FN_REBIAS;
    const float8_words subnormal = (float8_words) __builtin_convertvector((float8_floats)magnitude, float8_ints);
    const float8_words number = float8_select((float8_words)(magnitude < FLOAT_OF_LEAST_NORMAL), subnormal, normal);
    return (bits >> 24 & 0x80) |
           float8_select((float8_words)(number < E4M3FN_NAN), number, (float8_words){0} + E4M3FN_NAN);
}

/* Sets the top bit of each byte that is a NaN. */
static inline float8_words
e4m3fn_nans(float8_words x)
{
    return ((x & 0x7f7f7f7f) + 0x01010101) & 0x80808080;
}

/* A NaN sum has a's sign if a is a NaN, else sign 0, as in ml_dtypes. */
static inline vec
vec_add_e4m3fn(vec a, vec b)
{
    const float8_words x = (float8_words)a, y = (float8_words)b;
    float8_words sum = {0};
    for (int shift = 0; shift < 32; shift += 8)
        sum |= e4m3fn_nearest(e4m3fn_units(x >> shift & 0xff) + e4m3fn_units(y >> shift & 0xff)) << shift;
    const float8_words first = e4m3fn_nans(x), any = first | e4m3fn_nans(y), nan = any - (any >> 7);
    return (vec)(float8_select(any | nan, nan, sum) | (first & x));
}

#endif
