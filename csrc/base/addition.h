/* c = a + b as a whole: what the operands have in common, resolved once for every way to add them. */
#ifndef VECADD_BASE_ADDITION_H
#define VECADD_BASE_ADDITION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/layout.h"
#include "base/operand.h"
#include "base/output_order.h"
#include "base/strided.h"

struct addition {
    enum dtype dtype; /* of the sum, to which a and b are converted */
    int ndim;         /* of the sum, as its shape */
    ssize_t shape[LAYOUT_DIMENSIONS];
    size_t size;                        /* elements of the sum; where it is 0, nothing below is set */
    bool ordered;                       /* a sum that is still to be made lies in another order than C's: */
    ssize_t strides[LAYOUT_DIMENSIONS]; /* with these, in bytes; else not set */
    struct strided elements;            /* what loops and kernels take */
};

/* What an addition is resolved from, beside its operands. */
struct addition_rules {
    enum dtype dtype;      /* of the sum */
    enum order_rule order; /* of a sum that is still to be made */
    size_t least;          /* bytes of the sum below which the caller has no use for the answer */
};

enum refusal {
    REFUSED_NOT,
    REFUSED_SHAPES,           /* the operands do not broadcast together */
    REFUSED_OUT_SHAPE,        /* out has another shape than the inputs broadcast to: addition->shape */
    REFUSED_READ_ONLY,        /* out may not be written */
    REFUSED_INTERNAL_OVERLAP, /* two elements of out share memory */
    REFUSED_SIZE,             /* the sum is larger than any memory */
    REFUSED_LESS_THAN_LEAST
};

/* Resolves shape, order and layout of a + b. operands[2] is NULL where the sum is still to be made. Reads no element
 * but numbers. */
enum refusal addition_resolve(struct addition *addition, const struct operand *const operands[LAYOUT_OPERANDS],
                              const struct addition_rules *rules);

/* Whether the sum is one run of components: one dtype, aligned, element after element in all three. Addresses of first
 * elements; c may be NULL for memory that is yet to be had. */
bool addition_is_run(const struct addition *addition, const void *a, const void *b, const void *c);

#endif
