/* The memory order of a new sum's axes: it follows the operands' order by their library's rule. */
#ifndef VECADD_BASE_OUTPUT_ORDER_H
#define VECADD_BASE_OUTPUT_ORDER_H

#include "base/layout.h"

enum order_rule {
    ORDER_C,     /* JAX: C order for any operands */
    ORDER_NUMPY, /* order="K": by the operands' strides; C order where the operands disagree */
    ORDER_TORCH, /* by the first operand's strides; the second's where the first's do not decide */
};

/* Sets the strides, in bytes, of a contiguous sum of this shape; no extent is 0. Inputs broadcast to the shape; a
 * number has no dimension. Returns whether the strides differ from those of C order. */
bool output_order(enum order_rule rule, int ndim, const ssize_t *shape, const struct layout_view inputs[LAYOUT_SUM],
                  size_t itemsize, ssize_t *strides);

#endif
