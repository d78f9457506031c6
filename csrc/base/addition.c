#include "base/addition.h"

#include <stdint.h>
#include <string.h>

#include "base/scalar.h"

/* Broadcasts the sum's shape with an operand's; false if they do not fit. */
static bool
widen(struct addition *addition, const struct operand *operand)
{
    const int ndim = operand->ndim, more = ndim - addition->ndim;
    if (more > 0) {
        memmove(addition->shape + more, addition->shape, (size_t)addition->ndim * sizeof *addition->shape);
        memcpy(addition->shape, operand->shape, (size_t)more * sizeof *addition->shape);
        addition->ndim = ndim;
    }
    for (int back = 1; back <= ndim; back++) {
        const ssize_t extent = operand->shape[ndim - back];
        ssize_t *widest = &addition->shape[addition->ndim - back];
        if (*widest == 1)
            *widest = extent;
        else if (extent != 1 && extent != *widest)
            return false;
    }
    return true;
}

/* Finds the sum's shape. As in NumPy, out takes part in the broadcast but is never repeated: it must have the whole
 * shape. */
static enum refusal
find_shape(struct addition *addition, const struct operand *const operands[LAYOUT_OPERANDS])
{
    const struct operand *out = operands[LAYOUT_SUM];
    addition->ndim = 0;
    for (int k = 0; k < LAYOUT_OPERANDS; k++)
        if (operands[k] && !widen(addition, operands[k]))
            return REFUSED_SHAPES;
    if (!out)
        return REFUSED_NOT;
    bool same = out->ndim == addition->ndim;
    for (int i = 0; same && i < out->ndim; i++)
        same = out->shape[i] == addition->shape[i];
    return same ? REFUSED_NOT : REFUSED_OUT_SHAPE;
}

static enum refusal
check_out(const struct operand *out)
{
    if (!out->writable)
        return REFUSED_READ_ONLY;
    if (out->strides && out->size &&
        layout_has_internal_overlap(out->ndim, out->shape, out->strides, dtype_table[out->dtype].itemsize))
        return REFUSED_INTERNAL_OVERLAP;
    return REFUSED_NOT;
}

static struct layout_view
view_of(const struct operand *operand)
{
    return (struct layout_view){operand->ndim, operand->shape, operand->strides, dtype_table[operand->dtype].itemsize};
}

/* The order of a sum that has no memory yet. Operands in C order give C order by every rule. */
static void
find_order(struct addition *addition, const struct operand *const operands[LAYOUT_OPERANDS], enum order_rule rule)
{
    addition->ordered = false;
    if (operands[LAYOUT_SUM] || (!operands[0]->strides && !operands[1]->strides))
        return;
    const struct layout_view inputs[] = {view_of(operands[0]), view_of(operands[1])};
    addition->ordered = output_order(rule, addition->ndim, addition->shape, inputs,
                                     dtype_table[addition->dtype].itemsize, addition->strides);
}

/* Fills in addition->elements: dtypes, numbers and layout. */
static void
describe(struct addition *addition, const struct operand *const operands[LAYOUT_OPERANDS])
{
    struct strided *elements = &addition->elements;
    struct layout_view views[LAYOUT_OPERANDS];
    elements->sum = addition->dtype;
    for (int k = 0; k < LAYOUT_SUM; k++) {
        elements->dtype[k] = operands[k]->dtype;
        views[k] = view_of(operands[k]);
        elements->is_scalar[k] = operands[k]->place == PLACE_NUMBER;
        if (!elements->is_scalar[k])
            continue;
        memcpy(elements->scalar[k], operands[k]->data, MAX_ITEMSIZE);
        if (scalar_convert(elements->scalar[k], elements->dtype[k], elements->sum))
            elements->dtype[k] = elements->sum;
    }
    const struct operand *out = operands[LAYOUT_SUM];
    elements->dtype[LAYOUT_SUM] = out ? out->dtype : addition->dtype;
    views[LAYOUT_SUM] =
        out ? view_of(out)
            : (struct layout_view){addition->ndim, addition->shape, addition->ordered ? addition->strides : NULL,
                                   dtype_table[addition->dtype].itemsize};
    layout_make(&elements->layout, addition->ndim, addition->shape, views);
}

enum refusal
addition_resolve(struct addition *addition, const struct operand *const operands[LAYOUT_OPERANDS],
                 const struct addition_rules *rules)
{
    const size_t itemsize = dtype_table[rules->dtype].itemsize;
    addition->dtype = rules->dtype;
    enum refusal refusal = find_shape(addition, operands);
    if (refusal == REFUSED_NOT && operands[LAYOUT_SUM])
        refusal = check_out(operands[LAYOUT_SUM]);
    if (refusal != REFUSED_NOT)
        return refusal;
    if (!layout_count(addition->ndim, addition->shape, itemsize, &addition->size))
        return REFUSED_SIZE;
    if (addition->size < rules->least / itemsize)
        return REFUSED_LESS_THAN_LEAST;
    if (addition->size) {
        find_order(addition, operands, rules->order);
        describe(addition, operands);
    }
    return REFUSED_NOT;
}

bool
addition_is_run(const struct addition *addition, const void *a, const void *b, const void *c)
{
    const struct strided *elements = &addition->elements;
    const struct dtype_row *row = &dtype_table[addition->dtype];
    const void *const at[] = {a, b, c};
    for (int k = 0; k < LAYOUT_OPERANDS; k++) {
        const uintptr_t first = (uintptr_t)at[k] + (uintptr_t)elements->layout.offset[k];
        if ((k < LAYOUT_SUM && elements->is_scalar[k]) || elements->dtype[k] != addition->dtype ||
            !layout_is_dense(&elements->layout, k, row->itemsize) || first % component_size[row->component] != 0)
            return false;
    }
    return true;
}
