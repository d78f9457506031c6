/* float8_e4m3fn as ml_dtypes adds it: the adders' reference. */
#ifndef VECADD_TESTS_FLOAT8_H
#define VECADD_TESTS_FLOAT8_H

#include "benchmarks/proof/exact.h"

/* A NaN has the sign of a, where a is one, else of the sum that is too large, else none. */
static inline uint8_t
reference_e4m3fn(uint8_t a, uint8_t b)
{
    const struct format *format = &formats[E4M3FN];
    unsigned flags;
    return is_nan(format, a) ? a : (uint8_t)sum_of(format, decoded(format, a), decoded(format, b), &flags);
}

#endif
