/* Where the elements of arrays lie, and in which order an addition goes through them: shapes in elements, strides in
 * bytes, of any sign or 0. */
#ifndef VECADD_BASE_LAYOUT_H
#define VECADD_BASE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Dimensions of an array at most, as in NumPy 2; and what an addition has: a, b and the sum. */
enum { LAYOUT_DIMENSIONS = 64, LAYOUT_OPERANDS = 3, LAYOUT_SUM = 2 };

/* Whether the elements lie one after the other in C order. Axes of one element, and arrays of none, may have any
 * strides. */
bool layout_is_contiguous(int ndim, const ssize_t *shape, const ssize_t *strides, size_t itemsize);

/* Elements of an array of that shape. False where no array has it: an extent is negative, or the bytes of all extents
 * but those of 0 are more than can be counted. NumPy too refuses such an array, though it have no element, and so
 * every stride in C order can be counted. */
bool layout_count(int ndim, const ssize_t *shape, size_t itemsize, size_t *elements);

/* The bytes that the elements lie in: from `*low` <= 0, counted from the first element's address, `*bytes` on. No
 * extent is 0. False where they cannot be counted: no memory is so large. */
bool layout_bounds(int ndim, const ssize_t *shape, const ssize_t *strides, size_t itemsize, ssize_t *low,
                   size_t *bytes);

/* An operand before it is broadcast; a scalar has no dimension. */
struct layout_view {
    int ndim;
    const ssize_t *shape;
    const ssize_t *strides; /* NULL: C-contiguous */
    size_t itemsize;
};

/* The walk through the elements of a sum and of its operands: the least number of axes, the first one innermost, where
 * the strides of the sum are least and never negative. An operand that is broadcast along an axis has stride 0 there.
 */
struct layout {
    int ndim; /* 0: one element; no axis has fewer than 2 */
    ssize_t extent[LAYOUT_DIMENSIONS];
    ssize_t stride[LAYOUT_OPERANDS][LAYOUT_DIMENSIONS];
    ssize_t offset[LAYOUT_OPERANDS]; /* bytes from the operand's first element to where the walk begins */
};

/* The walk through a sum of this shape. Every view broadcasts to it, the last one has it, and no extent is 0. Axes of
 * one element are left out, axes along which the sum runs backwards are turned around for all operands, and two axes
 * that every operand runs through as through one are joined. */
void layout_make(struct layout *layout, int ndim, const ssize_t *shape,
                 const struct layout_view views[LAYOUT_OPERANDS]);

/* Whether an operand's elements follow one another, in the walk's order. */
bool layout_is_dense(const struct layout *layout, int operand, size_t itemsize);

/* Elements in all. */
size_t layout_size(const struct layout *layout);

/* Replaces an operand's strides by those of new memory that the walk fills from its beginning on. */
void layout_make_dense(struct layout *layout, int operand, size_t itemsize);

/* Whether an operand at x and the sum at c, addresses of first elements, share bytes, taken by the lowest and the
 * highest that each may touch; false where each element of the sum takes the place of its own operand. */
bool layout_overlaps(const struct layout *layout, int operand, const void *x, size_t itemsize, const void *c,
                     size_t c_itemsize);

/* Whether two elements of an array may share bytes: an axis of two elements or more with stride 0, or one whose steps
 * are shorter than what lies between its ends along the axes of smaller steps. */
bool layout_has_internal_overlap(int ndim, const ssize_t *shape, const ssize_t *strides, size_t itemsize);

/* The same of a walk's sum. */
bool layout_sum_has_internal_overlap(const struct layout *layout, size_t itemsize);

#ifdef __cplusplus
}
#endif
#endif
