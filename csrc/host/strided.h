/* Host additions of any layout, row by row: of slices, of what is broadcast, of two dtypes. In pieces that fit the L1
 * where an operand has to be converted or repeated first. */
#ifndef VECADD_HOST_STRIDED_H
#define VECADD_HOST_STRIDED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/plan.h"
#include "base/status.h"
#include "base/strided.h"

/* Whether host_strided_add can add it, and no slower than NumPy: rows that are long enough, lie side by side or are one
 * element repeated, each element aligned, of dtypes that are converted here; no element of the sum twice. Addresses of
 * first elements; those of numbers are not looked at. `c` may be NULL for memory that is yet to be had. */
bool host_strided_possible(const struct strided *add, const void *a, const void *b, const void *c);

/* Fills in simd and schedule of a plan whose strided is set. Returns 0, or -1 with *status set. */
int host_strided_plan(struct plan *plan, struct status *status);

/* c = a + b; returns the floating-point flags raised (fpenv.h). c overlaps an operand wholly, in one layout and dtype,
 * or not at all. */
unsigned host_strided_add(const struct plan *plan);

#endif
