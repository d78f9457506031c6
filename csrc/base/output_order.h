/* The order in which the axes of a new sum lie in memory: that of its operands, as their library has it. */
#ifndef VECADD_BASE_OUTPUT_ORDER_H
#define VECADD_BASE_OUTPUT_ORDER_H

#include "base/layout.h"

enum order_rule {
    ORDER_C,     /* whatever the operands are: JAX */
    ORDER_NUMPY, /* order="K": by the operands' strides; where two of them differ, C order */
    ORDER_TORCH, /* by the strides of the first operand, where these say nothing by the second one's */
};

/* Sets the strides, in bytes, of a contiguous sum of this shape, of which no extent is 0. Inputs broadcast to it; a
 * number has no dimension. Returns whether they are other than those of C order. */
bool output_order(enum order_rule rule, int ndim, const ssize_t *shape, const struct layout_view inputs[LAYOUT_SUM],
                  size_t itemsize, ssize_t *strides);

#endif
