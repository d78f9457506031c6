#include "base/addition.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* --- The order of a new sum. */

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

/* --- Python numbers. */

enum { DOUBLE_FRACTION = 52, DOUBLE_BIAS = 1023, DOUBLE_SPECIAL = 0x7ff };

/* A binary floating-point format of 32 bits at most. */
struct format {
    int fraction, exponent; /* bits of each */
};

/* Rounds x to nearest, ties to even. Integer arithmetic makes it independent of the rounding mode. */
static uint32_t
nearest(struct format to, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t sign = (uint32_t)(bits >> 63) << (to.fraction + to.exponent);
    const uint32_t infinity = ((1u << to.exponent) - 1) << to.fraction;
    const uint64_t fraction = bits & ((UINT64_C(1) << DOUBLE_FRACTION) - 1);
    const int from_exponent = (int)(bits >> DOUBLE_FRACTION) & DOUBLE_SPECIAL;
    int shift = DOUBLE_FRACTION - to.fraction;
    if (from_exponent == DOUBLE_SPECIAL)
        return sign | infinity | (fraction ? 1u << (to.fraction - 1) | (uint32_t)(fraction >> shift) : 0);

    int exponent = from_exponent - DOUBLE_BIAS + (1 << (to.exponent - 1)) - 1;
    if (exponent >= (1 << to.exponent) - 1)
        return sign | infinity;
    if (exponent < 1) { /* subnormal: the leading bit is one of the fraction's */
        shift += 1 - exponent;
        exponent = 1;
    }
    if (shift > DOUBLE_FRACTION + 2)
        return sign;
    const uint64_t significand = (from_exponent ? UINT64_C(1) << DOUBLE_FRACTION : 0) | fraction;
    const uint64_t half = (UINT64_C(1) << (shift - 1)) - 1 + (significand >> shift & 1);
    /* The leading bit of the significand adds one to the exponent, and so does a fraction that rounds up to a power of
     * two. */
    return sign | (((uint32_t)(exponent - 1) << to.fraction) + (uint32_t)((significand + half) >> shift));
}

static uint32_t
float_bits(double x)
{
    return nearest((struct format){23, 8}, x);
}

/* Rounds to float32 first, as ml_dtypes does for a double. */
static uint16_t
bfloat16_bits(double x)
{
    const uint32_t word = float_bits(x);
    if ((word & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(word >> 16 | 0x40u);
    return (uint16_t)((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
}

/* Rounds to float32 first, as ml_dtypes does for a double. Gives a NaN above 464, halfway from the largest number, 448,
 * to the next multiple, 480. */
static uint8_t
e4m3fn_bits(double x)
{
    const uint32_t word = float_bits(x), magnitude = word & 0x7fffffffu, least_normal = 121u << 23; /* 2^-6 */
    const uint32_t sign = word >> 24 & 0x80u;
    if (magnitude > 0x43e80000u)
        return (uint8_t)(sign | 0x7fu);
    if (magnitude >= least_normal)
        return (uint8_t)(sign | (((magnitude + 0x7ffffu + (magnitude >> 20 & 1u)) >> 20) - (120u << 3)));
    /* Subnormals are multiples of 2^-9; the significand's last place is 2^-shift of that. Below a quarter of 2^-9 all
     * round to 0. */
    const uint32_t exponent = magnitude >> 23, shift = 141 - exponent;
    const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
    if (shift > 25)
        return (uint8_t)sign;
    const uint32_t half = (1u << (shift - 1)) - 1 + (significand >> shift & 1u);
    return (uint8_t)(sign | (significand + half) >> shift);
}

/* Whether a component of 16 bits has the value of these bits of a float32. */
static bool
represents(enum component component, uint32_t bits)
{
    const int exponent = (int)(bits >> 23 & 0xff) - 127;
    if (component == COMPONENT_BF16)
        return (bits & 0xffffu) == 0;
    if (component != COMPONENT_F16)
        return false;
    if (exponent == 128 || (bits & 0x7fffffffu) == 0) /* infinite, NaN or zero */
        return true;
    /* 10 bits of fraction; below 2^-14 one less for each power of two. */
    const int lost = exponent >= -14 ? 13 : -exponent - 1;
    return exponent >= -24 && exponent <= 15 && ((bits | 0x800000u) & ((1u << lost) - 1)) == 0;
}

/* The component nearest to x, in the low bits; an integer component gets 0 or 1. */
static uint64_t
component_bits(enum component component, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    switch (component) {
    case COMPONENT_BOOL:
    case COMPONENT_I8:
    case COMPONENT_I16:
    case COMPONENT_I32:
    case COMPONENT_I64:
        return x != 0;
    case COMPONENT_E4M3FN:
        return e4m3fn_bits(x);
    case COMPONENT_F16:
        return nearest((struct format){10, 5}, x);
    case COMPONENT_BF16:
        return bfloat16_bits(x);
    case COMPONENT_F32:
        return float_bits(x);
    case COMPONENT_F64:
        return bits;
    case COMPONENT_COUNT:
        break;
    }
    return 0;
}

bool
scalar_convert(unsigned char *element, enum dtype from, enum dtype to)
{
    const struct dtype_row *row = &dtype_table[to];
    double parts[2] = {0, 0};
    if (from == DTYPE_BOOL)
        parts[0] = element[0] != 0;
    else if ((from == DTYPE_FLOAT64 || from == DTYPE_COMPLEX128) && value_is_float(row->value))
        memcpy(parts, element, dtype_table[from].itemsize);
    else if (from == DTYPE_FLOAT32) {
        uint32_t bits;
        float x;
        memcpy(&bits, element, sizeof bits);
        memcpy(&x, element, sizeof x);
        if (!represents(row->component, bits))
            return false;
        parts[0] = x;
    } else
        return false;
    for (size_t i = 0; i < row->components; i++) {
        const uint64_t bits = component_bits(row->component, parts[i]);
        memcpy(element + i * component_size[row->component], &bits, component_size[row->component]);
    }
    return true;
}

/* --- The addition. */

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
