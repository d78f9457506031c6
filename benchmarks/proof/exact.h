/* Exact sums of short dtypes by arithmetic on their bits, in integers: what additions are compared with. It shares no
 * code with vecadd and uses no floating-point instruction.
 *
 * An operand is first rounded to the sum's dtype, as NumPy casts it. The two are then added exactly and the sum is
 * rounded once, to the nearest, ties to even. Last it is rounded to the dtype of out. */
#ifndef VECADD_PROOF_EXACT_H
#define VECADD_PROOF_EXACT_H

#include <stdbool.h>
#include <stdint.h>

#define INLINED __attribute__((always_inline)) static inline

enum kind { TRUTH, UNSIGNED, SIGNED, FLOATING };

/* Of a floating-point dtype: the bits of its fraction, the exponent of its least subnormal, the bits of its greatest
 * number, and whether infinities follow that, or its NaN. */
struct format {
    const char *name;
    enum kind kind;
    int bits, fraction, least;
    uint32_t greatest;
    bool infinite;
};

enum { BOOL, INT8, UINT8, INT16, UINT16, INT32, E4M3FN, F16, BF16, F32, FORMATS };

static const struct format formats[FORMATS] = {
    [BOOL] = {.name = "bool", .kind = TRUTH, .bits = 8},
    [INT8] = {.name = "int8", .kind = SIGNED, .bits = 8},
    [UINT8] = {.name = "uint8", .kind = UNSIGNED, .bits = 8},
    [INT16] = {.name = "int16", .kind = SIGNED, .bits = 16},
    [UINT16] = {.name = "uint16", .kind = UNSIGNED, .bits = 16},
    [INT32] = {.name = "int32", .kind = SIGNED, .bits = 32},
    [E4M3FN] = {"float8_e4m3fn", FLOATING, 8, 3, -9, 0x7e, false},
    [F16] = {"float16", FLOATING, 16, 10, -24, 0x7bff, true},
    [BF16] = {"bfloat16", FLOATING, 16, 7, -133, 0x7f7f, true},
    [F32] = {"float32", FLOATING, 32, 23, -149, 0x7f7fffff, true},
};

enum flag { OVERFLOW = 1, INVALID = 2 };

/* Finite: significand * 2^exponent. `negative` is a zero's sign too. */
enum state { FINITE, INFINITE, QUIET, SIGNALLING };
struct value {
    int32_t significand;
    int16_t exponent;
    uint8_t state;
    bool negative;
};

INLINED uint32_t
sign_bit(const struct format *format)
{
    return UINT32_C(1) << (format->bits - 1);
}

INLINED bool
is_nan(const struct format *format, uint32_t x)
{
    return format->kind == FLOATING && (x & (sign_bit(format) - 1)) > format->greatest + format->infinite;
}

INLINED bool
is_signalling(const struct format *format, uint32_t x)
{
    return format->infinite && is_nan(format, x) && !(x >> (format->fraction - 1) & 1);
}

INLINED uint32_t
quiet_nan(const struct format *format)
{
    return format->infinite ? (format->greatest + 1) | UINT32_C(1) << (format->fraction - 1) : format->greatest + 1;
}

INLINED struct value
decoded(const struct format *format, uint32_t x)
{
    const uint32_t magnitude = x & (sign_bit(format) - 1);
    const bool negative = x & sign_bit(format);
    switch (format->kind) {
    case TRUTH:
        return (struct value){.significand = x != 0};
    case UNSIGNED:
        return (struct value){.significand = (int32_t)x};
    case SIGNED:
        return (struct value){.significand = (int32_t)(magnitude - (negative ? sign_bit(format) : 0))};
    case FLOATING:
        break;
    }
    if (is_nan(format, x))
        return (struct value){.state = is_signalling(format, x) ? SIGNALLING : QUIET, .negative = negative};
    if (magnitude > format->greatest)
        return (struct value){.state = INFINITE, .negative = negative};
    const uint32_t one = UINT32_C(1) << format->fraction, power = magnitude >> format->fraction;
    const int32_t significand = (int32_t)((magnitude & (one - 1)) | (power ? one : 0));
    return (struct value){.significand = negative ? -significand : significand,
                          .exponent = (int16_t)(format->least + (power ? (int)power - 1 : 0)),
                          .negative = negative};
}

/* The floating-point number nearest to significand * 2^exponent, which is not 0; ties to even. A number that is too
 * large becomes what follows the greatest: infinity, or the NaN. */
INLINED uint32_t
nearest(const struct format *format, int64_t significand, int exponent)
{
    const uint32_t sign = significand < 0 ? sign_bit(format) : 0;
    uint64_t magnitude = significand < 0 ? (uint64_t)-significand : (uint64_t)significand;
    int shift = 64 - __builtin_clzll(magnitude) - (format->fraction + 1);
    if (shift < format->least - exponent)
        shift = format->least - exponent;
    if (shift > 62)
        return sign;
    if (shift <= 0)
        magnitude <<= -shift;
    else {
        const uint64_t rest = magnitude & ((UINT64_C(1) << shift) - 1), half = UINT64_C(1) << (shift - 1);
        magnitude >>= shift;
        magnitude += rest > half || (rest == half && (magnitude & 1));
    }
    /* The leading bit counts one on the exponent, as a significand that is rounded up to a power of two does. */
    const uint64_t bits = ((uint64_t)(exponent + shift - format->least) << format->fraction) + magnitude;
    return sign | (uint32_t)(bits > format->greatest ? format->greatest + 1 : bits);
}

INLINED uint32_t
encoded(const struct format *format, struct value value)
{
    const uint32_t sign = value.negative ? sign_bit(format) : 0;
    if (format->kind == TRUTH)
        return value.significand != 0;
    if (format->kind != FLOATING)
        return (uint32_t)((uint32_t)value.significand & (uint32_t)((UINT64_C(1) << format->bits) - 1));
    if (value.state == QUIET || value.state == SIGNALLING)
        return quiet_nan(format);
    if (value.state == INFINITE)
        return sign | (format->greatest + 1);
    return value.significand ? nearest(format, value.significand, value.exponent) : sign;
}

INLINED uint32_t
converted(const struct format *from, const struct format *to, uint32_t x)
{
    return from == to ? x : encoded(to, decoded(from, x));
}

/* Of numbers farther apart, one at this distance says which way to round: a significand has at most 24 bits. */
enum { FAR = 38 };

INLINED uint32_t
finite_sum(const struct format *format, struct value x, struct value y, unsigned *flags)
{
    if (x.exponent < y.exponent) {
        const struct value swapped = x;
        x = y;
        y = swapped;
    }
    int apart = x.exponent - y.exponent;
    int64_t less = y.significand;
    if (apart > FAR) {
        apart = FAR;
        less = (less > 0) - (less < 0);
    }
    const int64_t sum = (int64_t)x.significand * (INT64_C(1) << apart) + less;
    if (sum == 0)
        return x.negative && y.negative ? sign_bit(format) : 0;
    const uint32_t bits = nearest(format, sum, x.exponent - apart);
    if (format->infinite && (bits & (sign_bit(format) - 1)) > format->greatest) {
        /* bfloat16 is added as float32, whose overflow is the one that is reported. */
        const struct format *wider = format == &formats[BF16] ? &formats[F32] : format;
        if ((nearest(wider, sum, x.exponent - apart) & (sign_bit(wider) - 1)) > wider->greatest)
            *flags |= OVERFLOW;
    }
    return bits;
}

INLINED uint32_t
sum_of(const struct format *format, struct value x, struct value y, unsigned *flags)
{
    *flags = 0;
    if (format->kind == TRUTH)
        return x.significand || y.significand;
    if (format->kind != FLOATING)
        return encoded(format, (struct value){.significand = x.significand + y.significand});
    if ((x.state | y.state) == FINITE)
        return finite_sum(format, x, y, flags);
    const bool opposite = x.state == INFINITE && y.state == INFINITE && x.negative != y.negative;
    if (x.state == SIGNALLING || y.state == SIGNALLING || opposite)
        *flags = INVALID;
    if (x.state >= QUIET || y.state >= QUIET || opposite)
        return quiet_nan(format);
    return encoded(format, x.state == INFINITE ? x : y);
}

#endif
