/* Where the elements of an array lie: shapes in elements, strides in bytes, either of any sign or 0. */
#ifndef VECADD_LAYOUT_H
#define VECADD_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Whether the elements lie one after the other in C order. Axes of one element, and arrays of none, may have any
 * strides. */
bool layout_is_contiguous(int ndim, const ssize_t *shape, const ssize_t *strides, size_t itemsize);

/* The bytes that the elements lie in: from `*low` <= 0, counted from the first element's address, `*bytes` on. No
 * extent is 0. False where they cannot be counted: no memory is so large. */
bool layout_bounds(int ndim, const ssize_t *shape, const ssize_t *strides, size_t itemsize, ssize_t *low,
                   size_t *bytes);

#endif
