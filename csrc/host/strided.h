/* Host additions row by row: of slices, of what is broadcast, of two dtypes. In pieces that fit the L1 where an operand
 * has to be converted or repeated first. */
#ifndef VECADD_HOST_STRIDED_H
#define VECADD_HOST_STRIDED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/layout.h"
#include "host/add.h"

struct host_rows {
    enum dtype dtype; /* of the sum and of c: what NumPy promotes the operands to */
    enum dtype from[2];
    struct layout layout; /* its first axis is the row */
    const struct host_simd *simd;
    struct host_schedule schedule; /* its block in elements */
};

/* Whether host_rows_add can, and no slower than NumPy: rows that are long enough, lie side by side or are one element
 * repeated, each element aligned, of dtypes that are converted here; no element of the sum twice. `c` may be NULL for
 * memory that is yet to be had. */
bool host_rows_possible(const struct host_rows *call, const void *a, const void *b, const void *c);

/* Fills in simd and schedule. Returns 0, or -1 with *status set. */
int host_rows_plan(struct host_rows *call, struct status *status);

/* c = a + b; returns the floating-point flags raised (fpenv.h). c overlaps an operand wholly, in one layout and dtype,
 * or not at all. */
unsigned host_rows_add(const struct host_rows *call, const void *a, const void *b, void *c);

#endif
