#include "base/output_order.h"

#include <stdlib.h>

/* The operands' strides along the sum's axes, which the rules compare; 0 along broadcast axes. */
struct comparison {
    const ssize_t *shape;
    ssize_t stride[LAYOUT_SUM][LAYOUT_DIMENSIONS];
};

static void
broadcast_strides(struct comparison *compared, int ndim, const struct layout_view *view, int operand, bool keeps_short)
{
    ssize_t contiguous = (ssize_t)view->itemsize;
    for (int back = 1; back <= ndim; back++) {
        const int axis = ndim - back, own = view->ndim - back;
        const bool there = own >= 0 && (view->shape[own] > 1 || (keeps_short && compared->shape[axis] == 1));
        compared->stride[operand][axis] = !there ? 0 : view->strides ? view->strides[own] : contiguous;
        if (own >= 0)
            contiguous *= view->shape[own];
    }
}

/* Negative: axis `inner` belongs inside axis `outer`; positive: outside it; 0: no operand decides. */
static int
compare_by_numpy(const struct comparison *compared, int inner, int outer)
{
    bool any = false, stays = false;
    for (int k = 0; k < LAYOUT_SUM; k++) {
        const ssize_t in = labs(compared->stride[k][inner]), out = labs(compared->stride[k][outer]);
        if (in == 0 || out == 0)
            continue;
        any = true;
        stays |= in <= out;
    }
    return !any ? 0 : stays ? -1 : 1;
}

/* Returns as compare_by_numpy does. PyTorch has no negative strides. */
static int
compare_by_torch(const struct comparison *compared, int inner, int outer)
{
    for (int k = 0; k < LAYOUT_SUM; k++) {
        const ssize_t in = compared->stride[k][inner], out = compared->stride[k][outer];
        if (in == 0 || out == 0)
            continue;
        if (in != out)
            return in < out ? -1 : 1;
        if (compared->shape[inner] > compared->shape[outer])
            return 1;
    }
    return 0;
}

/* Sorts the axes, innermost first, by the insertion sort of NumPy's iterator: it skips axes that it cannot compare, and
 * shifts the axes in between up. */
static void
sort_by_numpy(const struct comparison *compared, int ndim, int *axes)
{
    for (int i = 1; i < ndim; i++) {
        const int axis = axes[i];
        int to = i;
        for (int j = i - 1; j >= 0; j--) {
            const int order = compare_by_numpy(compared, axes[j], axis);
            if (order < 0)
                break;
            if (order > 0)
                to = j;
        }
        for (int j = i; j > to; j--)
            axes[j] = axes[j - 1];
        axes[to] = axis;
    }
}

/* Sorts the axes, innermost first, by the sort of PyTorch's iterator: it swaps two axes at a time. */
static void
sort_by_torch(const struct comparison *compared, int ndim, int *axes)
{
    for (int i = 1; i < ndim; i++) {
        int at = i;
        for (int j = i - 1; j >= 0; j--) {
            const int order = compare_by_torch(compared, axes[j], axes[at]);
            if (order < 0)
                break;
            if (order == 0)
                continue;
            const int axis = axes[j];
            axes[j] = axes[at];
            axes[at] = axis;
            at = j;
        }
    }
}

bool
output_order(enum order_rule rule, int ndim, const ssize_t *shape, const struct layout_view inputs[LAYOUT_SUM],
             size_t itemsize, ssize_t *strides)
{
    struct comparison compared = {.shape = shape};
    int axes[LAYOUT_DIMENSIONS];
    for (int i = 0; i < ndim; i++)
        axes[i] = ndim - 1 - i;
    for (int k = 0; k < LAYOUT_SUM; k++)
        broadcast_strides(&compared, ndim, &inputs[k], k, rule == ORDER_TORCH);
    if (rule == ORDER_NUMPY)
        sort_by_numpy(&compared, ndim, axes);
    else if (rule == ORDER_TORCH)
        sort_by_torch(&compared, ndim, axes);

    bool differs = false;
    ssize_t step = (ssize_t)itemsize;
    for (int i = 0; i < ndim; step *= shape[axes[i++]]) {
        strides[axes[i]] = step;
        differs |= axes[i] != ndim - 1 - i;
    }
    return differs && !layout_is_contiguous(ndim, shape, strides, itemsize);
}
