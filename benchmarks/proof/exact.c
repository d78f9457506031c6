/* The sums of exact.h for benchmarks.proof: a library that is linked with nothing of vecadd's. */
#include "benchmarks/proof/exact.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

static uint32_t
load(int bits, const void *array, size_t i)
{
    return bits == 8    ? ((const uint8_t *)array)[i]
           : bits == 16 ? ((const uint16_t *)array)[i]
                        : ((const uint32_t *)array)[i];
}

static void
store(int bits, void *array, size_t at, const uint32_t *x, size_t n)
{
    for (size_t i = 0; bits == 8 && i < n; i++)
        ((uint8_t *)array)[at + i] = (uint8_t)x[i];
    for (size_t i = 0; bits == 16 && i < n; i++)
        ((uint16_t *)array)[at + i] = (uint16_t)x[i];
    for (size_t i = 0; bits == 32 && i < n; i++)
        ((uint32_t *)array)[at + i] = x[i];
}

/* The format's number, by which the functions below know it; -1 for another dtype. */
EXPORTED int
exact_format(const char *name)
{
    for (int i = 0; i < FORMATS; i++)
        if (strcmp(formats[i].name, name) == 0)
            return i;
    return -1;
}

/* The sums and flags of one left operand. Compiled for each format by itself, which takes a third of the time. */
INLINED void
add_row(const struct format *format, struct value x, const struct value *operands, size_t n, uint32_t *sums,
        uint8_t *flags)
{
    for (size_t k = 0; k < n; k++) {
        unsigned raised;
        sums[k] = sum_of(format, x, operands[k], &raised);
        flags[k] = (uint8_t)raised;
    }
}

static void
add_row_of(int sum, struct value x, const struct value *operands, size_t n, uint32_t *sums, uint8_t *flags)
{
    switch (sum) {
#define FORMAT(number)                                                                                                 \
    case number:                                                                                                       \
        add_row(&formats[number], x, operands, n, sums, flags);                                                        \
        break;
        FORMAT(E4M3FN)
        FORMAT(F16)
        FORMAT(BF16)
        FORMAT(F32)
#undef FORMAT
    default:
        add_row(&formats[sum], x, operands, n, sums, flags);
    }
}

/* Writes the sums of `rows` left operands of dtype a, the bits first, first + 1, ..., and of `columns` right operands
 * of dtype b, the bits 0, 1, ... and again from 0 on: added in the dtype `sum`, in the dtype `out`. `flags` gets what
 * each raises. Returns 0, or -1 without memory. */
EXPORTED int
exact_sums(int a, int b, int sum, int out, uint32_t first, size_t rows, size_t columns, void *sums, uint8_t *flags)
{
    enum { PART = 1024 };
    const struct format *left = &formats[a], *right = &formats[b], *added = &formats[sum], *written = &formats[out];
    const uint32_t last = (uint32_t)((UINT64_C(1) << right->bits) - 1);
    uint32_t part[PART];
    struct value *operands = malloc(columns * sizeof *operands);
    if (operands == NULL)
        return -1;
    for (size_t k = 0; k < columns; k++)
        operands[k] = decoded(added, converted(right, added, (uint32_t)k & last));
    for (size_t i = 0; i < rows; i++) {
        const struct value x = decoded(added, converted(left, added, first + (uint32_t)i));
        for (size_t k = 0; k < columns; k += PART) {
            const size_t n = columns - k < PART ? columns - k : PART, at = i * columns + k;
            add_row_of(sum, x, operands + k, n, part, flags + at);
            for (size_t j = 0; added != written && j < n; j++)
                part[j] = converted(added, written, part[j]);
            store(written->bits, sums, at, part, n);
        }
    }
    free(operands);
    return 0;
}

/* How many of n sums are wrong, and the index of the first. A NaN may have any sign and payload, and is quiet. */
EXPORTED uint64_t
exact_wrong(int out, const void *due, const void *found, size_t n, uint64_t *first)
{
    enum { PART = 4096 };
    const struct format *format = &formats[out];
    const size_t size = (size_t)format->bits / 8;
    uint64_t wrong = 0;
    for (size_t part = 0; part < n; part += PART) {
        const size_t end = n - part < PART ? n : part + PART;
        if (memcmp((const char *)due + part * size, (const char *)found + part * size, (end - part) * size) == 0)
            continue;
        for (size_t i = part; i < end; i++) {
            const uint32_t x = load(format->bits, due, i), y = load(format->bits, found, i);
            if (x == y || (is_nan(format, x) && is_nan(format, y) && !is_signalling(format, y)))
                continue;
            if (wrong++ == 0)
                *first = i;
        }
    }
    return wrong;
}

/* Gathers the operands, 16 bits each, of the sums that raise exactly `flag` (0: nothing) and returns how many. */
EXPORTED size_t
exact_select(unsigned flag, const uint8_t *flags, uint32_t first, size_t rows, size_t columns, uint16_t *a, uint16_t *b)
{
    size_t found = 0;
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < columns; k++) {
            a[found] = (uint16_t)(first + i);
            b[found] = (uint16_t)k;
            found += flags[i * columns + k] == flag;
        }
    return found;
}
