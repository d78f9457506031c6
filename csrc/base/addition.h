/* c = a + b as a whole: the common shape, dtype, order and layout of its operands, resolved once for all routes. */
#ifndef VECADD_BASE_ADDITION_H
#define VECADD_BASE_ADDITION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/layout.h"
#include "base/operand.h"

/* The memory order of a new sum's axes: it follows the operands' order by their library's rule. */
enum order_rule {
    ORDER_C,     /* JAX: C order for any operands */
    ORDER_NUMPY, /* order="K": by the operands' strides; C order where the operands disagree */
    ORDER_TORCH, /* by the first operand's strides; the second's where the first's do not decide */
};

struct addition {
    enum dtype dtype; /* of the sum; a and b are converted to it */
    int ndim;         /* of the sum, like shape */
    ssize_t shape[LAYOUT_DIMENSIONS];
    size_t size;                        /* elements of the sum; if 0, no field below is set */
    bool ordered;                       /* the new sum's order is not C order: */
    ssize_t strides[LAYOUT_DIMENSIONS]; /* its strides, in bytes; set only if `ordered` */
    struct strided elements;            /* the input of host loops and kernels */
};

/* Input of addition_resolve beside the operands. */
struct addition_rules {
    enum dtype dtype;      /* of the sum */
    enum order_rule order; /* of a new sum, when no out is given */
    size_t least; /* bytes: smaller sums are refused (REFUSED_LESS_THAN_LEAST) before their layout is computed */
};

enum refusal {
    REFUSED_NOT,
    REFUSED_SHAPES,           /* the operands do not broadcast together */
    REFUSED_OUT_SHAPE,        /* out's shape is not addition->shape, to which the inputs broadcast */
    REFUSED_READ_ONLY,        /* out is read-only */
    REFUSED_INTERNAL_OVERLAP, /* two elements of out share memory */
    REFUSED_SIZE,             /* the sum is larger than any memory */
    REFUSED_LESS_THAN_LEAST
};

/* Resolves shape, order and layout of a + b. operands[2] is NULL for a new sum. Reads no array's elements, only the
 * values of Python numbers. */
enum refusal addition_resolve(struct addition *addition, const struct operand *const operands[LAYOUT_OPERANDS],
                              const struct addition_rules *rules);

/* Whether the addition is one contiguous run of components: all three arrays have one dtype, are aligned and dense. a,
 * b and c point to first elements; c may be NULL for memory that is not allocated yet. */
bool addition_is_run(const struct addition *addition, const void *a, const void *b, const void *c);

/* Sets the strides, in bytes, of a contiguous sum of this shape; no extent is 0. Inputs broadcast to the shape; a
 * number has no dimension. Returns whether the strides differ from those of C order. */
bool output_order(enum order_rule rule, int ndim, const ssize_t *shape, const struct layout_view inputs[LAYOUT_SUM],
                  size_t itemsize, ssize_t *strides);

/* Converts *element in place from a Python number's dtype (bool, float64 or complex128) to a dtype that it promotes to.
 * Rounds to nearest, ties to even, under any rounding mode, and raises no flag. A float32 becomes a float of 16 bits
 * that has its value. `element` has room for 16 bytes. For all others returns false and leaves it unchanged. */
bool scalar_convert(unsigned char *element, enum dtype from, enum dtype to);

#endif
