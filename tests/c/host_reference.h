/* The reference of the host adders: each component's sum and flags by scalar arithmetic, and operands that reach
 * every kind of value. */
#ifndef VECADD_HOST_REFERENCE_H
#define VECADD_HOST_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/fpenv.h"
#include "benchmarks/proof/exact.h"
#include "float8.h"
#include "host/add.h"

/* A short float, by arithmetic in integers, which knows no rounding mode. */
static inline unsigned
reference_short(const struct format *format, uint16_t a, uint16_t b, uint16_t *c)
{
    unsigned raised;
    *c = (uint16_t)sum_of(format, decoded(format, a), decoded(format, b), &raised);
    return (raised & INVALID ? FP_INVALID : 0u) | (raised & OVERFLOW ? FP_OVERFLOW : 0u);
}

/* The scalar instruction, on bits: a signalling NaN must not pass through a variable that might quieten it. */
static inline unsigned
reference_f32(uint32_t a, uint32_t b, uint32_t *c)
{
    volatile float x, y, sum;
    memcpy((void *)&x, &a, sizeof x);
    memcpy((void *)&y, &b, sizeof y);
    const fpenv_word environment = fpenv_begin();
    sum = x + y;
    memcpy(c, (const void *)&sum, sizeof sum);
    return fpenv_end(environment);
}

static inline unsigned
reference_f64(uint64_t a, uint64_t b, uint64_t *c)
{
    volatile double x, y, sum;
    memcpy((void *)&x, &a, sizeof x);
    memcpy((void *)&y, &b, sizeof y);
    const fpenv_word environment = fpenv_begin();
    sum = x + y;
    memcpy(c, (const void *)&sum, sizeof sum);
    return fpenv_end(environment);
}

static inline unsigned
reference(enum component component, const void *a, const void *b, void *c, size_t n)
{
    unsigned flags = 0;
    for (size_t i = 0; i < n; i++) {
        switch (component) {
        case COMPONENT_BOOL:
            ((uint8_t *)c)[i] = ((const uint8_t *)a)[i] || ((const uint8_t *)b)[i];
            break;
        case COMPONENT_I8:
            ((uint8_t *)c)[i] = (uint8_t)(((const uint8_t *)a)[i] + ((const uint8_t *)b)[i]);
            break;
        case COMPONENT_I16:
            ((uint16_t *)c)[i] = (uint16_t)(((const uint16_t *)a)[i] + ((const uint16_t *)b)[i]);
            break;
        case COMPONENT_I32:
            ((uint32_t *)c)[i] = ((const uint32_t *)a)[i] + ((const uint32_t *)b)[i];
            break;
        case COMPONENT_I64:
            ((uint64_t *)c)[i] = ((const uint64_t *)a)[i] + ((const uint64_t *)b)[i];
            break;
        case COMPONENT_E4M3FN:
            ((uint8_t *)c)[i] = reference_e4m3fn(((const uint8_t *)a)[i], ((const uint8_t *)b)[i]);
            break;
        case COMPONENT_F16:
            flags |=
                reference_short(&formats[F16], ((const uint16_t *)a)[i], ((const uint16_t *)b)[i], &((uint16_t *)c)[i]);
            break;
        case COMPONENT_BF16:
            flags |= reference_short(&formats[BF16], ((const uint16_t *)a)[i], ((const uint16_t *)b)[i],
                                     &((uint16_t *)c)[i]);
            break;
        case COMPONENT_F32:
            flags |= reference_f32(((const uint32_t *)a)[i], ((const uint32_t *)b)[i], &((uint32_t *)c)[i]);
            break;
        case COMPONENT_F64:
            flags |= reference_f64(((const uint64_t *)a)[i], ((const uint64_t *)b)[i], &((uint64_t *)c)[i]);
            break;
        case COMPONENT_COUNT:
            break;
        }
    }
    return flags;
}

/* The same bits, or both a quiet NaN: payload and sign of a NaN are the processor's business. */
static inline bool
same(enum component component, const void *x, const void *y)
{
    static const uint64_t infinity[] = {[COMPONENT_F16] = 0x7c00,
                                        [COMPONENT_BF16] = 0x7f80,
                                        [COMPONENT_F32] = 0x7f800000,
                                        [COMPONENT_F64] = 0x7ff0000000000000};
    static const uint64_t quiet[] = {[COMPONENT_F16] = 0x7e00,
                                     [COMPONENT_BF16] = 0x7fc0,
                                     [COMPONENT_F32] = 0x7fc00000,
                                     [COMPONENT_F64] = 0x7ff8000000000000};
    uint64_t p = 0, q = 0;
    memcpy(&p, x, component_size[component]);
    memcpy(&q, y, component_size[component]);
    if (p == q)
        return true;
    return component >= COMPONENT_F16 && (p & infinity[component]) == infinity[component] &&
           (p & quiet[component]) == quiet[component] && (q & quiet[component]) == quiet[component];
}

static inline size_t
first_difference(enum component component, const void *x, const void *y, size_t n)
{
    const size_t size = component_size[component];
    for (size_t i = 0; i < n; i++)
        if (!same(component, (const char *)x + i * size, (const char *)y + i * size))
            return i;
    return n;
}

static inline uint64_t
random_bits(void)
{
    static uint64_t state = 0x9e3779b97f4a7c15;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545f4914f6cdd1d;
}

/* Random bits reach NaNs of both kinds, infinities and subnormals within a few hundred 16-bit floats; the wider ones
 * get a sixteenth of theirs from the edges of the format. */
static inline uint64_t
random_component(enum component component)
{
    static const uint64_t edges_f32[] = {0,          0x80000000, 1,          0x807fffff, 0x7f7fffff, 0xff7fffff,
                                         0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0x3f800000, 0x00800000};
    static const uint64_t edges_f64[] = {0,
                                         1ull << 63,
                                         1,
                                         0x800fffffffffffff,
                                         0x7fefffffffffffff,
                                         0xffefffffffffffff,
                                         0x7ff0000000000000,
                                         0xfff0000000000000,
                                         0x7ff8000000000000,
                                         0x7ff0000000000001,
                                         0x3ff0000000000000,
                                         0x0010000000000000};
    const uint64_t bits = random_bits();
    const size_t edge = bits >> 40 & 0xff;
    if (component == COMPONENT_F32 && edge < 12)
        return edges_f32[edge];
    if (component == COMPONENT_F64 && edge < 12)
        return edges_f64[edge];
    if (component == COMPONENT_BOOL && bits & 1ull << 63)
        return 0;
    return bits;
}

static inline void
fill(enum component component, void *array, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t bits = random_component(component);
        memcpy((char *)array + i * component_size[component], &bits, component_size[component]);
    }
}

#endif
