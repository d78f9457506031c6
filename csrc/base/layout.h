/* The memory layout of arrays, and the order in which an addition visits their elements. Shapes count elements; strides
 * count bytes and may be negative or 0. */
#ifndef VECADD_BASE_LAYOUT_H
#define VECADD_BASE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most dimensions of an array, as in NumPy 2; the operands of an addition: a, b and the sum; the sum's index. */
enum { LAYOUT_DIMENSIONS = 64, LAYOUT_OPERANDS = 3, LAYOUT_SUM = 2 };

/* Whether the elements follow each other in C order. The strides of axes of one element, and of arrays without
 * elements, do not matter. */
bool layout_is_contiguous(int ndim, const ssize_t *shape, const ssize_t *strides, size_t itemsize);

/* Counts the elements of an array of that shape. False for an impossible shape: an extent is negative, or the byte
 * count overflows with extents of 0 left out of the product. NumPy too refuses such shapes, even for arrays without
 * elements; so no stride in C order overflows. */
bool layout_count(int ndim, const ssize_t *shape, size_t itemsize, size_t *elements);

/* The bytes that the elements occupy: `*bytes` of them from offset `*low` <= 0, relative to the first element's
 * address. No extent is 0. False if the count overflows: no memory is so large. */
bool layout_bounds(int ndim, const ssize_t *shape, const ssize_t *strides, size_t itemsize, ssize_t *low,
                   size_t *bytes);

/* An operand before it is broadcast; a scalar has no dimension. */
struct layout_view {
    int ndim;
    const ssize_t *shape;
    const ssize_t *strides; /* NULL: C-contiguous */
    size_t itemsize;
};

/* The traversal of a sum and its operands, with as few axes as possible. The first axis is innermost; the sum's strides
 * are never negative and grow from axis to axis. An operand that is broadcast along an axis has stride 0 there. */
struct layout {
    int ndim; /* 0: one element; no axis has fewer than 2 */
    ssize_t extent[LAYOUT_DIMENSIONS];
    ssize_t stride[LAYOUT_OPERANDS][LAYOUT_DIMENSIONS];
    ssize_t offset[LAYOUT_OPERANDS]; /* bytes from the operand's first element to the first one visited */
};

/* Makes the traversal for a sum of this shape. Every view broadcasts to the shape, the last view has it, and no extent
 * is 0. Drops axes of one element, reverses all operands along axes on which the sum runs backwards, and joins two axes
 * that are one evenly spaced run for every operand. */
void layout_make(struct layout *layout, int ndim, const ssize_t *shape,
                 const struct layout_view views[LAYOUT_OPERANDS]);

/* Whether an operand's elements are contiguous in the traversal's order. */
bool layout_is_dense(const struct layout *layout, int operand, size_t itemsize);

/* The number of elements. */
size_t layout_size(const struct layout *layout);

/* Replaces an operand's strides by those of new memory that is dense in the traversal's order. */
void layout_make_dense(struct layout *layout, int operand, size_t itemsize);

/* Whether the address ranges of an operand and the sum intersect; x and c point to their first elements. False if each
 * element of the sum overwrites just the element that it is computed from. */
bool layout_overlaps(const struct layout *layout, int operand, const void *x, size_t itemsize, const void *c,
                     size_t c_itemsize);

/* Whether two elements of an array may share bytes: an axis of two or more elements has stride 0, or an axis has a
 * stride smaller than the span of all axes inside it. */
bool layout_has_internal_overlap(int ndim, const ssize_t *shape, const ssize_t *strides, size_t itemsize);

/* Whether two elements of a traversal's sum may share bytes. */
bool layout_sum_has_internal_overlap(const struct layout *layout, size_t itemsize);

/* An addition of any layout and any dtypes, for host/strided.c and cuda/strided.cu. */
enum { MAX_ITEMSIZE = 16 };

struct strided {
    enum dtype dtype[LAYOUT_OPERANDS]; /* a's, b's and out's own */
    enum dtype sum; /* a and b are converted to it and added in it; the sum is then converted to out's dtype */
    bool is_scalar[LAYOUT_SUM]; /* a or b is the number in `scalar` and has no memory. In the sum's dtype if it converts
                                 * to it, because operands of one dtype take a faster kernel. A float32 beside floats of
                                 * 16 bits is not converted: they are added in float32, and the sum is rounded */
    struct layout layout;
    unsigned char scalar[LAYOUT_SUM][MAX_ITEMSIZE]; /* after `layout`, so that it is aligned for every component */
};

/* Whether out shares memory with an input in any other way than layout_overlaps allows; a, b and c point to first
 * elements. */
bool strided_overlaps(const struct strided *add, const void *a, const void *b, const void *c);

#ifdef __cplusplus
}
#endif
#endif
