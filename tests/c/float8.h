/* float8_e4m3fn as ml_dtypes adds it, in doubles: the adders' reference. */
#ifndef VECADD_TESTS_FLOAT8_H
#define VECADD_TESTS_FLOAT8_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

static inline bool
e4m3fn_is_nan(uint8_t x)
{
    return (x & 0x7f) == 0x7f;
}

/* In units of 2^-9, the least subnormal. */
static inline double
e4m3fn_in_units(uint8_t x)
{
    const int exponent = x >> 3 & 15, fraction = x & 7;
    return copysign(exponent ? ldexp(8 + fraction, exponent - 1) : fraction, x & 0x80 ? -1 : 1);
}

/* A NaN has the sign of a, where a is one, else of the sum that is too large, else none. */
static inline uint8_t
reference_e4m3fn(uint8_t a, uint8_t b)
{
    if (e4m3fn_is_nan(a) || e4m3fn_is_nan(b))
        return e4m3fn_is_nan(a) ? a : 0x7f;
    const double sum = e4m3fn_in_units(a) + e4m3fn_in_units(b), magnitude = fabs(sum);
    const int sign = signbit(sum) ? 0x80 : 0;
    int exponent = 0; /* of 2, in a place of the last bit */
    while (ldexp(16, exponent) <= magnitude)
        exponent++;
    const double places = ldexp(magnitude, -exponent), below = floor(places), rest = places - below;
    const int number = (int)below + (rest > 0.5 || (rest == 0.5 && fmod(below, 2) == 1));
    const int bits = (exponent << 3) + number; /* 16 places are 8 of the next exponent */
    return (uint8_t)(sign | (bits < 0x7f ? bits : 0x7f));
}

#endif
