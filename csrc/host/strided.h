/* Host additions of any layout, row by row: slices, broadcasts, two dtypes. If an operand has to be converted or
 * repeated first, the rows are cut into pieces that fit the L1. */
#ifndef VECADD_HOST_STRIDED_H
#define VECADD_HOST_STRIDED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/layout.h"
#include "base/plan.h"
#include "host/schedule.h"

/* Whether host_strided_add can run the addition, no slower than NumPy: long rows that are contiguous or one element
 * repeated, aligned elements, dtypes that convert_for knows, and a sum without internal overlap. a, b and c point to
 * first elements and are ignored for numbers. `c` may be NULL for memory that is not allocated yet. */
bool host_strided_possible(const struct strided *add, const void *a, const void *b, const void *c);

/* What the addition of plan->strided asks of the host. */
struct host_request host_strided_request(const struct plan *plan);

/* c = a + b; returns the floating-point flags raised (fpenv.h). c is an operand's memory with the same layout and
 * dtype, or overlaps it nowhere. */
unsigned host_strided_add(const struct plan *plan);

/* Converts n elements; both arrays are contiguous and aligned. A real number becomes a complex one with imaginary part
 * +0. */
typedef void convert_function(const void *from, void *to, size_t n);

/* NULL if the dtypes are equal, if one is a 16-bit float, or if NumPy's promotion never needs the conversion. */
convert_function *convert_for(enum dtype from, enum dtype to);

#endif
