#include "base/scalar.h"

#include <stdint.h>
#include <string.h>

enum { DOUBLE_FRACTION = 52, DOUBLE_BIAS = 1023, DOUBLE_SPECIAL = 0x7ff };

/* A binary floating-point format of 32 bits at most. */
struct format {
    int fraction, exponent; /* bits of each */
};

/* Rounds x to nearest, ties to even. Integer arithmetic makes it independent of the rounding mode. */
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
    /* The leading bit of the significand adds one to the exponent, and so does a fraction that rounds up to a power of
     * two. */
    return sign | (((uint32_t)(exponent - 1) << to.fraction) + (uint32_t)((significand + half) >> shift));
}

static uint32_t
float_bits(double x)
{
    return nearest((struct format){23, 8}, x);
}

/* Rounds to float32 first, as ml_dtypes does for a double. */
static uint16_t
bfloat16_bits(double x)
{
    const uint32_t word = float_bits(x);
    if ((word & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(word >> 16 | 0x40u);
    return (uint16_t)((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
}

/* Rounds to float32 first, as ml_dtypes does for a double. Gives a NaN above 464, halfway from the largest number, 448,
 * to the next multiple, 480. */
static uint8_t
e4m3fn_bits(double x)
{
    const uint32_t word = float_bits(x), magnitude = word & 0x7fffffffu, least_normal = 121u << 23; /* 2^-6 */
    const uint32_t sign = word >> 24 & 0x80u;
    if (magnitude > 0x43e80000u)
        return (uint8_t)(sign | 0x7fu);
    if (magnitude >= least_normal)
        return (uint8_t)(sign | (((magnitude + 0x7ffffu + (magnitude >> 20 & 1u)) >> 20) - (120u << 3)));
    /* Subnormals are multiples of 2^-9; the significand's last place is 2^-shift of that. Below a quarter of 2^-9 all
     * round to 0. */
    const uint32_t exponent = magnitude >> 23, shift = 141 - exponent;
    const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
    if (shift > 25)
        return (uint8_t)sign;
    const uint32_t half = (1u << (shift - 1)) - 1 + (significand >> shift & 1u);
    return (uint8_t)(sign | (significand + half) >> shift);
}

/* Whether a component of 16 bits has the value of these bits of a float32. */
static bool
holds(enum component component, uint32_t bits)
{
    const int exponent = (int)(bits >> 23 & 0xff) - 127;
    if (component == COMPONENT_BF16)
        return (bits & 0xffffu) == 0;
    if (component != COMPONENT_F16)
        return false;
    if (exponent == 128 || (bits & 0x7fffffffu) == 0) /* infinite, NaN or zero */
        return true;
    /* 10 bits of fraction; below 2^-14 one less for each power of two. */
    const int lost = exponent >= -14 ? 13 : -exponent - 1;
    return exponent >= -24 && exponent <= 15 && ((bits | 0x800000u) & ((1u << lost) - 1)) == 0;
}

/* The component nearest to x, in the low bits; an integer component gets 0 or 1. */
static uint64_t
component_bits(enum component component, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    switch (component) {
    case COMPONENT_BOOL:
    case COMPONENT_I8:
    case COMPONENT_I16:
    case COMPONENT_I32:
    case COMPONENT_I64:
        return x != 0;
    case COMPONENT_E4M3FN:
        return e4m3fn_bits(x);
    case COMPONENT_F16:
        return nearest((struct format){10, 5}, x);
    case COMPONENT_BF16:
        return bfloat16_bits(x);
    case COMPONENT_F32:
        return float_bits(x);
    case COMPONENT_F64:
        return bits;
    case COMPONENT_COUNT:
        break;
    }
    return 0;
}

bool
scalar_convert(unsigned char *element, enum dtype from, enum dtype to)
{
    const struct dtype_row *row = &dtype_table[to];
    double parts[2] = {0, 0};
    if (from == DTYPE_BOOL)
        parts[0] = element[0] != 0;
    else if ((from == DTYPE_FLOAT64 || from == DTYPE_COMPLEX128) && value_is_float(row->value))
        memcpy(parts, element, dtype_table[from].itemsize);
    else if (from == DTYPE_FLOAT32) {
        uint32_t bits;
        float x;
        memcpy(&bits, element, sizeof bits);
        memcpy(&x, element, sizeof x);
        if (!holds(row->component, bits))
            return false;
        parts[0] = x;
    } else
        return false;
    for (size_t i = 0; i < row->components; i++) {
        const uint64_t bits = component_bits(row->component, parts[i]);
        memcpy(element + i * component_size[row->component], &bits, component_size[row->component]);
    }
    return true;
}
