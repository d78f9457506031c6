#include "base/scalar.h"

#include <stdint.h>
#include <string.h>

enum { DOUBLE_FRACTION = 52, DOUBLE_BIAS = 1023, DOUBLE_SPECIAL = 0x7ff };

/* A binary floating-point format of 32 bits at most. */
struct format {
    int fraction, exponent; /* bits of each */
};

/* In integers, which have no rounding mode. */
static uint32_t
nearest(struct format to, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t sign = (uint32_t)(bits >> 63) << (to.fraction + to.exponent);
    const uint32_t infinity = ((1u << to.exponent) - 1) << to.fraction;
    const uint64_t fraction = bits & ((UINT64_C(1) << DOUBLE_FRACTION) - 1);
    const int from_exponent = (int)(bits >> DOUBLE_FRACTION) & DOUBLE_SPECIAL;
    int shift = DOUBLE_FRACTION - to.fraction;
    if (from_exponent == DOUBLE_SPECIAL)
        return sign | infinity | (fraction ? 1u << (to.fraction - 1) | (uint32_t)(fraction >> shift) : 0);

    int exponent = from_exponent - DOUBLE_BIAS + (1 << (to.exponent - 1)) - 1;
    if (exponent >= (1 << to.exponent) - 1)
        return sign | infinity;
    if (exponent < 1) { /* subnormal: the leading bit is one of the fraction's */
        shift += 1 - exponent;
        exponent = 1;
    }
    if (shift > DOUBLE_FRACTION + 2)
        return sign;
    const uint64_t significand = (from_exponent ? UINT64_C(1) << DOUBLE_FRACTION : 0) | fraction;
    const uint64_t half = (UINT64_C(1) << (shift - 1)) - 1 + (significand >> shift & 1);
    /* A leading bit adds one to the exponent, as a fraction that is rounded up to the next power of two does. */
    return sign | (((uint32_t)(exponent - 1) << to.fraction) + (uint32_t)((significand + half) >> shift));
}

static uint32_t
float_bits(double x)
{
    return nearest((struct format){23, 8}, x);
}

/* By way of float32, as ml_dtypes goes from a double. */
static uint16_t
bfloat16_bits(double x)
{
    const uint32_t word = float_bits(x);
    if ((word & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(word >> 16 | 0x40u);
    return (uint16_t)((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
}

/* Whether `to` is a floating-point dtype. */
static bool
put(unsigned char *element, enum dtype to, const double parts[2])
{
    const uint32_t single[] = {float_bits(parts[0]), float_bits(parts[1])};
    const uint16_t half = (uint16_t)nearest((struct format){10, 5}, parts[0]), brain = bfloat16_bits(parts[0]);
    switch (to) {
    case DTYPE_FLOAT16:
        memcpy(element, &half, sizeof half);
        return true;
    case DTYPE_BFLOAT16:
        memcpy(element, &brain, sizeof brain);
        return true;
    case DTYPE_FLOAT32:
    case DTYPE_COMPLEX64:
        memcpy(element, single, sizeof single);
        return true;
    case DTYPE_FLOAT64:
    case DTYPE_COMPLEX128:
        memcpy(element, parts, 2 * sizeof *parts);
        return true;
    default:
        return false;
    }
}

bool
scalar_convert(unsigned char *element, enum dtype from, enum dtype to)
{
    double parts[2] = {0, 0};
    uint64_t integer = 0;
    switch (from) {
    case DTYPE_BOOL:
        integer = element[0];
        parts[0] = element[0];
        break;
    case DTYPE_FLOAT64:
        memcpy(parts, element, sizeof *parts);
        break;
    case DTYPE_COMPLEX128:
        memcpy(parts, element, sizeof parts);
        break;
    default:
        return false;
    }
    if (put(element, to, parts))
        return true;
    if (from != DTYPE_BOOL)
        return false;
    memcpy(element, &integer, sizeof integer);
    return true;
}
