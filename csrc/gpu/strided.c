#include "gpu/strided.h"

#include <string.h>

#include "cuda/kernels.h"

static size_t
itemsize_of(const struct strided *add, int operand)
{
    return dtype_table[add->dtype[operand]].itemsize;
}

size_t
strided_temporary(const struct plan *plan)
{
    const struct strided *add = plan->strided;
    const void *const operands[] = {plan->a, plan->b};
    const size_t itemsize = itemsize_of(add, LAYOUT_SUM);
    for (int k = 0; k < LAYOUT_SUM; k++)
        if (!add->is_scalar[k] && layout_overlaps(&add->layout, k, operands[k], itemsize_of(add, k), plan->c, itemsize))
            return plan->n * itemsize;
    return 0;
}

/* The element that leaves every other unchanged when added: -0.0, since 0.0 would turn -0.0 into 0.0. */
static void
set_neutral(unsigned char *element, enum dtype dtype)
{
    const struct dtype_row *row = &dtype_table[dtype];
    memset(element, 0, MAX_ITEMSIZE);
    for (size_t component = 1; component <= row->components && value_is_float(row->value); component++)
        element[component * component_size[row->component] - 1] = 0x80;
}

/* out = temporary + the neutral element, by the same kernel. */
static cudaError_t
queue_copy(const struct plan *plan, void *temporary)
{
    const enum dtype dtype = plan->strided->dtype[LAYOUT_SUM];
    struct strided copy = {
        .dtype = {dtype, dtype, dtype}, .sum = dtype, .is_scalar = {false, true}, .layout = plan->strided->layout};
    layout_make_dense(&copy.layout, 0, dtype_table[dtype].itemsize);
    for (int i = 0; i < copy.layout.ndim; i++)
        copy.layout.stride[1][i] = 0;
    set_neutral(copy.scalar[1], dtype);
    return strided_launch(&copy, temporary, NULL, plan->c, plan->stream);
}

cudaError_t
strided_queue(const struct plan *plan, void *temporary)
{
    if (!temporary)
        return strided_launch(plan->strided, plan->a, plan->b, plan->c, plan->stream);
    struct strided add = *plan->strided;
    layout_make_dense(&add.layout, LAYOUT_SUM, itemsize_of(&add, LAYOUT_SUM));
    const cudaError_t error = strided_launch(&add, plan->a, plan->b, temporary, plan->stream);
    return error == cudaSuccess ? queue_copy(plan, temporary) : error;
}
