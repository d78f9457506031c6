#include "layout.h"

bool
layout_is_contiguous(int ndim, const ssize_t *shape, const ssize_t *strides, size_t itemsize)
{
    ssize_t due = (ssize_t)itemsize;
    bool contiguous = true;
    for (int i = ndim; i-- > 0;) {
        if (shape[i] == 0)
            return true;
        if (shape[i] == 1)
            continue;
        contiguous = contiguous && strides[i] == due;
        contiguous = !__builtin_mul_overflow(due, shape[i], &due) && contiguous;
    }
    return contiguous;
}

bool
layout_bounds(int ndim, const ssize_t *shape, const ssize_t *strides, size_t itemsize, ssize_t *low, size_t *bytes)
{
    ssize_t first = 0, last = 0, end;
    for (int i = 0; i < ndim; i++) {
        ssize_t reach;
        if (__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) ||
            (reach < 0 ? __builtin_add_overflow(first, reach, &first) : __builtin_add_overflow(last, reach, &last)))
            return false;
    }
    if (__builtin_add_overflow(last, (ssize_t)itemsize, &end) || __builtin_sub_overflow(end, first, &end))
        return false;
    *low = first;
    *bytes = (size_t)end;
    return true;
}
