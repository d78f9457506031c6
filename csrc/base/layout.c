#include "base/layout.h"

#include <stdint.h>

bool
layout_is_contiguous(int ndim, const ssize_t *shape, const ssize_t *strides, size_t itemsize)
{
    ssize_t expected = (ssize_t)itemsize;
    bool contiguous = true;
    for (int i = ndim; i-- > 0;) {
        if (shape[i] == 0)
            return true;
        if (shape[i] == 1)
            continue;
        contiguous = contiguous && strides[i] == expected;
        contiguous = !__builtin_mul_overflow(expected, shape[i], &expected) && contiguous;
    }
    return contiguous;
}

bool
layout_count(int ndim, const ssize_t *shape, size_t itemsize, size_t *elements)
{
    ssize_t bytes = (ssize_t)itemsize;
    bool empty = false;
    for (int i = 0; i < ndim; i++) {
        empty = empty || shape[i] == 0;
        if (shape[i] < 0 || (shape[i] > 0 && __builtin_mul_overflow(bytes, shape[i], &bytes)))
            return false;
    }
    *elements = empty ? 0 : (size_t)bytes / itemsize;
    return true;
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

/* One axis of all three operands while layout_make builds the traversal. */
struct axis {
    ssize_t extent, stride[LAYOUT_OPERANDS];
};

static ssize_t
stride_in(const struct layout_view *view, int axis, ssize_t contiguous)
{
    if (axis < 0 || view->shape[axis] == 1)
        return 0;
    return view->strides ? view->strides[axis] : contiguous;
}

/* Lists the axes of more than one element, the last axis of the shape first. Returns their number. */
static int
list_axes(struct axis *axes, int ndim, const ssize_t *shape, const struct layout_view views[LAYOUT_OPERANDS])
{
    int count = 0;
    ssize_t contiguous[LAYOUT_OPERANDS];
    for (int k = 0; k < LAYOUT_OPERANDS; k++)
        contiguous[k] = (ssize_t)views[k].itemsize;
    for (int back = 1; back <= ndim; back++) {
        struct axis axis = {.extent = shape[ndim - back]};
        for (int k = 0; k < LAYOUT_OPERANDS; k++) {
            const int own = views[k].ndim - back;
            axis.stride[k] = stride_in(&views[k], own, contiguous[k]);
            if (own >= 0)
                contiguous[k] *= views[k].shape[own];
        }
        if (axis.extent > 1)
            axes[count++] = axis;
    }
    return count;
}

static void
turn_around(struct layout *layout, struct axis *axis)
{
    for (int k = 0; k < LAYOUT_OPERANDS; k++) {
        layout->offset[k] += (axis->extent - 1) * axis->stride[k];
        axis->stride[k] = -axis->stride[k];
    }
}

/* A stable sort: axes of equal stride keep the shape's order. */
static void
sort_by_the_sums_strides(struct axis *axes, int count)
{
    for (int i = 1; i < count; i++) {
        const struct axis axis = axes[i];
        int at = i;
        for (; at > 0 && axes[at - 1].stride[LAYOUT_SUM] > axis.stride[LAYOUT_SUM]; at--)
            axes[at] = axes[at - 1];
        axes[at] = axis;
    }
}

static bool
run_on(const struct axis *inner, const struct axis *outer)
{
    for (int k = 0; k < LAYOUT_OPERANDS; k++)
        if (outer->stride[k] != inner->stride[k] * inner->extent)
            return false;
    return true;
}

void
layout_make(struct layout *layout, int ndim, const ssize_t *shape, const struct layout_view views[LAYOUT_OPERANDS])
{
    struct axis axes[LAYOUT_DIMENSIONS];
    const int count = list_axes(axes, ndim, shape, views);
    for (int k = 0; k < LAYOUT_OPERANDS; k++)
        layout->offset[k] = 0;
    for (int i = 0; i < count; i++)
        if (axes[i].stride[LAYOUT_SUM] < 0)
            turn_around(layout, &axes[i]);
    sort_by_the_sums_strides(axes, count);

    int joined = 0;
    for (int i = 0; i < count; i++) {
        if (joined > 0 && run_on(&axes[joined - 1], &axes[i]))
            axes[joined - 1].extent *= axes[i].extent;
        else
            axes[joined++] = axes[i];
    }
    layout->ndim = joined;
    for (int i = 0; i < joined; i++) {
        layout->extent[i] = axes[i].extent;
        for (int k = 0; k < LAYOUT_OPERANDS; k++)
            layout->stride[k][i] = axes[i].stride[k];
    }
}

bool
layout_is_dense(const struct layout *layout, int operand, size_t itemsize)
{
    ssize_t expected = (ssize_t)itemsize;
    for (int i = 0; i < layout->ndim; expected *= layout->extent[i++])
        if (layout->stride[operand][i] != expected)
            return false;
    return true;
}

size_t
layout_size(const struct layout *layout)
{
    size_t size = 1;
    for (int i = 0; i < layout->ndim; i++)
        size *= (size_t)layout->extent[i];
    return size;
}

void
layout_make_dense(struct layout *layout, int operand, size_t itemsize)
{
    ssize_t stride = (ssize_t)itemsize;
    layout->offset[operand] = 0;
    for (int i = 0; i < layout->ndim; stride *= layout->extent[i++])
        layout->stride[operand][i] = stride;
}

/* The address range [*first, *end) that an operand may touch. */
static void
reach(const struct layout *layout, int operand, const void *x, size_t itemsize, uintptr_t *first, uintptr_t *end)
{
    *first = (uintptr_t)x + (uintptr_t)layout->offset[operand];
    *end = *first + itemsize;
    for (int i = 0; i < layout->ndim; i++) {
        const ssize_t along = (layout->extent[i] - 1) * layout->stride[operand][i];
        *(along < 0 ? first : end) += (uintptr_t)along;
    }
}

static bool
is_same_view(const struct layout *layout, int operand)
{
    for (int i = 0; i < layout->ndim; i++)
        if (layout->stride[operand][i] != layout->stride[LAYOUT_SUM][i])
            return false;
    return true;
}

bool
layout_overlaps(const struct layout *layout, int operand, const void *x, size_t itemsize, const void *c,
                size_t c_itemsize)
{
    const uintptr_t x_at = (uintptr_t)x + (uintptr_t)layout->offset[operand],
                    c_at = (uintptr_t)c + (uintptr_t)layout->offset[LAYOUT_SUM];
    uintptr_t x_first, x_end, c_first, c_end;
    if (x_at == c_at && itemsize == c_itemsize && is_same_view(layout, operand))
        return false;
    reach(layout, operand, x, itemsize, &x_first, &x_end);
    reach(layout, LAYOUT_SUM, c, c_itemsize, &c_first, &c_end);
    return x_first < c_end && c_first < x_end;
}

bool
layout_sum_has_internal_overlap(const struct layout *layout, size_t itemsize)
{
    const ssize_t *strides = layout->stride[LAYOUT_SUM];
    ssize_t span = (ssize_t)itemsize;
    for (int i = 0; i < layout->ndim; i++) {
        if (strides[i] < span)
            return true;
        span += (layout->extent[i] - 1) * strides[i];
    }
    return false;
}

bool
layout_has_internal_overlap(int ndim, const ssize_t *shape, const ssize_t *strides, size_t itemsize)
{
    const struct layout_view view = {ndim, shape, strides, itemsize};
    const struct layout_view views[] = {view, view, view};
    struct layout layout;
    layout_make(&layout, ndim, shape, views);
    return layout_sum_has_internal_overlap(&layout, itemsize);
}

bool
strided_overlaps(const struct strided *add, const void *a, const void *b, const void *c)
{
    const void *const inputs[] = {a, b};
    const size_t itemsize = dtype_table[add->dtype[LAYOUT_SUM]].itemsize;
    for (int k = 0; k < LAYOUT_SUM; k++)
        if (!add->is_scalar[k] &&
            layout_overlaps(&add->layout, k, inputs[k], dtype_table[add->dtype[k]].itemsize, c, itemsize))
            return true;
    return false;
}
