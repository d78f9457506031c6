/* Operands and the sums that are expected of them, component by component and without any of the package's own adders.
 * The values are small whole numbers, which every component represents exactly. */
#ifndef VECADD_SUMS_H
#define VECADD_SUMS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/dtype.h"

/* Repeats after a prime number of components: a component taken from a grid, a chunk or a power of two away is another
 * value. */
static inline int
sums_value(enum component component, size_t i, unsigned salt)
{
    /* Three of a float8 with 4 bits have to add up exactly. */
    const int most = component == COMPONENT_E4M3FN ? 3 : 63;
    return (int)((i % 10007 * 2654435761u + salt * 40503u) >> 7) & most;
}

static inline uint16_t
sums_bfloat16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

/* Of a whole number below 2048; not every compiler has the type. */
static inline uint16_t
sums_float16(unsigned value)
{
    int exponent = 0;
    while (value >> exponent > 1)
        exponent++;
    return value == 0 ? 0 : (uint16_t)((unsigned)(exponent + 15) << 10 | ((value << 10 >> exponent) & 0x3ff));
}

/* Of 0 to 15. */
static inline uint8_t
sums_e4m3fn(unsigned value)
{
    const uint16_t half = sums_float16(value);
    return half == 0 ? 0 : (uint8_t)((half >> 7) - (8 << 3));
}

static inline void
sums_put(enum component component, void *array, size_t i, int value)
{
    switch (component) {
    case COMPONENT_BOOL:
        ((uint8_t *)array)[i] = value != 0;
        break;
    case COMPONENT_I8:
        ((int8_t *)array)[i] = (int8_t)value;
        break;
    case COMPONENT_I16:
        ((int16_t *)array)[i] = (int16_t)value;
        break;
    case COMPONENT_I32:
        ((int32_t *)array)[i] = value;
        break;
    case COMPONENT_I64:
        ((int64_t *)array)[i] = value;
        break;
    case COMPONENT_E4M3FN:
        ((uint8_t *)array)[i] = sums_e4m3fn((unsigned)value);
        break;
    case COMPONENT_F16:
        ((uint16_t *)array)[i] = sums_float16((unsigned)value);
        break;
    case COMPONENT_BF16:
        ((uint16_t *)array)[i] = sums_bfloat16((float)value);
        break;
    case COMPONENT_F32:
        ((float *)array)[i] = (float)value;
        break;
    case COMPONENT_F64:
        ((double *)array)[i] = value;
        break;
    case COMPONENT_COUNT:
        break;
    }
}

/* One operand; another salt, another operand. */
static inline void
sums_fill(enum component component, void *array, size_t n, unsigned salt)
{
    for (size_t i = 0; i < n; i++)
        sums_put(component, array, i, sums_value(component, i, salt));
}

/* What the operands of these salts add up to. */
static inline void
sums_expect(enum component component, void *array, size_t n, unsigned salt_a, unsigned salt_b)
{
    for (size_t i = 0; i < n; i++)
        sums_put(component, array, i, sums_value(component, i, salt_a) + sums_value(component, i, salt_b));
}

#endif
