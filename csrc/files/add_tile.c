#include "files/add_tile.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "base/layout.h"
#include "base/plan.h"
#include "base/util.h"
#include "host/add.h"
#include "host/strided.h"

enum {
    ROWS = 16,        /* of a block: 16 neighbours of 4 bytes fill a cache line */
    WIDTH = 2 << 10,  /* bytes of a block's row: two blocks fit an L1 or an L2 */
    SHORTEST_ROW = 32 /* elements, as in host/strided.c */
};

/* Copies rows of `columns` elements that are `along` bytes apart, the rows `down` bytes apart, to rows of WIDTH bytes.
 */
#define DEFINE_GATHER(Element)                                                                                         \
    static void gather_##Element(const char *from, ssize_t along, ssize_t down, size_t columns, size_t rows, char *to) \
    {                                                                                                                  \
        for (size_t i = 0; i < columns; i++)                                                                           \
            for (size_t j = 0; j < rows; j++)                                                                          \
                ((Element *)(to + j * WIDTH))[i] = *(const Element *)(from + (ssize_t)i * along + (ssize_t)j * down);  \
    }
typedef struct {
    uint64_t part[2];
} uint128;
DEFINE_GATHER(uint8_t)
DEFINE_GATHER(uint16_t)
DEFINE_GATHER(uint32_t)
DEFINE_GATHER(uint64_t)
DEFINE_GATHER(uint128)

/* Copies a block of elements of any dtype into C order: as unsigned integers, because only their size matters. */
static void
gather(size_t itemsize, const char *from, ssize_t along, ssize_t down, size_t columns, size_t rows, char *to)
{
    (itemsize == 1   ? gather_uint8_t
     : itemsize == 2 ? gather_uint16_t
     : itemsize == 4 ? gather_uint32_t
     : itemsize == 8 ? gather_uint64_t
                     : gather_uint128)(from, along, down, columns, rows, to);
}

/* Whether an input's elements have to be gathered for the sum's rows. */
static bool
is_turned(const struct strided *add, int operand)
{
    const ssize_t stride = add->layout.stride[operand][0];
    return stride != 0 && stride != (ssize_t)dtype_table[add->dtype[operand]].itemsize;
}

/* The axis along which the first turned input is contiguous, 0 without one. */
static int
other_axis(const struct strided *add)
{
    for (int k = 0; k < LAYOUT_SUM; k++)
        for (int i = 1; i < add->layout.ndim && is_turned(add, k); i++)
            if (add->layout.stride[k][i] == (ssize_t)dtype_table[add->dtype[k]].itemsize)
                return i;
    return 0;
}

/* Adds a block of the axes 0 and `other` that begins at these addresses. */
static unsigned
add_block(const struct plan *plan, const char *const at[LAYOUT_OPERANDS], int other, size_t columns, size_t rows)
{
    alignas(64) char gathered[LAYOUT_SUM][ROWS * WIDTH];
    const struct strided *add = plan->strided;
    struct strided block = {.dtype = {add->dtype[0], add->dtype[1], add->dtype[LAYOUT_SUM]},
                            .sum = add->sum,
                            .layout = {.ndim = 2, .extent = {(ssize_t)columns, (ssize_t)rows}}};
    struct plan part = *plan;
    const char *from[] = {at[0], at[1], at[LAYOUT_SUM]};
    for (int k = 0; k < LAYOUT_OPERANDS; k++) {
        ssize_t along = add->layout.stride[k][0], down = add->layout.stride[k][other];
        if (k < LAYOUT_SUM && is_turned(add, k)) {
            const size_t itemsize = dtype_table[add->dtype[k]].itemsize;
            gather(itemsize, at[k], along, down, columns, rows, gathered[k]);
            from[k] = gathered[k];
            along = (ssize_t)itemsize;
            down = WIDTH;
        }
        block.layout.stride[k][0] = along;
        block.layout.stride[k][1] = down;
    }
    part.strided = &block;
    part.n = columns * rows;
    part.a = from[0];
    part.b = from[1];
    part.c = (char *)(uintptr_t)from[LAYOUT_SUM];
    return host_strided_add(&part);
}

/* Adds arrays of which one has another order than the sum, for example Fortran order beside C order, on one thread.
 * False, and nothing is done, for dtypes that the host does not convert and for sums of short rows. */
static bool
add_turned(const struct plan *plan, unsigned *flags)
{
    const struct strided *add = plan->strided;
    const struct layout *layout = &add->layout;
    const int other = other_axis(add);
    if (other == 0 || layout->extent[0] < SHORTEST_ROW)
        return false;
    for (int k = 0; k < LAYOUT_SUM; k++)
        if (add->dtype[k] != add->sum && !convert_for(add->dtype[k], add->sum))
            return false;

    const size_t length = (size_t)layout->extent[0], height = (size_t)layout->extent[other];
    const size_t width = WIDTH / MAX_ITEMSIZE;
    const size_t planes = layout_size(layout) / (length * height);
    for (size_t plane = 0; plane < planes; plane++) {
        const char *begin[] = {plan->a, plan->b, plan->c};
        size_t left = plane;
        for (int i = 1; i < layout->ndim; i++) {
            if (i == other)
                continue;
            for (int k = 0; k < LAYOUT_OPERANDS; k++)
                begin[k] += (ssize_t)(left % (size_t)layout->extent[i]) * layout->stride[k][i];
            left /= (size_t)layout->extent[i];
        }
        for (size_t row = 0; row < height; row += ROWS)
            for (size_t column = 0; column < length; column += width) {
                const char *at[LAYOUT_OPERANDS];
                for (int k = 0; k < LAYOUT_OPERANDS; k++)
                    at[k] = begin[k] + (ssize_t)column * layout->stride[k][0] + (ssize_t)row * layout->stride[k][other];
                *flags |= add_block(plan, at, other, smaller(width, length - column), smaller(ROWS, height - row));
            }
    }
    return true;
}

int
tile_adder_schedule(struct tile_adder *adder, const struct tiles *tiles, struct status *status)
{
    const struct dtype_row *sum = &dtype_table[adder->dtype[LAYOUT_SUM]];
    return host_schedule(&adder->schedule,
                         &(struct host_request){.component = sum->component,
                                                .n = layout_size(&tiles->layout) * sum->components,
                                                .unit = sum->components,
                                                .threads = 1,
                                                .stores = STORES_ORDINARY},
                         status);
}

bool
add_tile_in_place(const struct tile_adder *adder, const struct tiles *tiles)
{
    const struct layout *layout = &tiles->layout;
    const size_t strides = (size_t)layout->ndim * sizeof layout->stride[0][0];
    return adder->schedule.simd && adder->dtype[0] == adder->dtype[LAYOUT_SUM] &&
           memcmp(layout->stride[0], layout->stride[LAYOUT_SUM], strides) == 0;
}

/* The layout of the tile in memory. Its strides are in the order of the traversal, a view's are not: C order. */
static void
layout_of(const struct tiles *tiles, const struct tile *tile, struct layout *layout)
{
    const int ndim = tiles->layout.ndim;
    ssize_t shape[LAYOUT_DIMENSIONS], strides[LAYOUT_DIMENSIONS], turned[LAYOUT_OPERANDS][LAYOUT_DIMENSIONS];
    struct layout_view views[LAYOUT_OPERANDS];
    for (int i = 0; i < ndim; i++)
        shape[i] = tile->extent[ndim - 1 - i];
    for (int k = 0; k < LAYOUT_OPERANDS; k++) {
        tile_strides(tiles, tile, k, strides);
        for (int i = 0; i < ndim; i++)
            turned[k][i] = strides[ndim - 1 - i];
        views[k] = (struct layout_view){ndim, shape, turned[k], tiles->itemsize[k]};
    }
    layout_make(layout, ndim, shape, views);
}

bool
add_tile(const struct tile_adder *adder, const struct tiles *tiles, const struct tile *tile,
         char *const at[LAYOUT_OPERANDS], unsigned *flags)
{
    if (!adder->schedule.simd)
        return false;
    const enum dtype *dtype = adder->dtype;
    const struct dtype_row *sum = &dtype_table[dtype[LAYOUT_SUM]];
    struct strided strided = {.dtype = {dtype[0], dtype[1], dtype[LAYOUT_SUM]}, .sum = dtype[LAYOUT_SUM]};
    struct plan plan = {.route = ROUTE_HOST,
                        .component = sum->component,
                        .n = tile->size,
                        .a = at[0],
                        .b = at[1],
                        .c = at[LAYOUT_SUM],
                        .schedule = adder->schedule,
                        .strided = &strided,
                        .device = -1};
    layout_of(tiles, tile, &strided.layout);

    bool run = dtype[0] == dtype[LAYOUT_SUM] && dtype[1] == dtype[LAYOUT_SUM];
    for (int k = 0; k < LAYOUT_OPERANDS && run; k++)
        run = layout_is_dense(&strided.layout, k, sum->itemsize);
    if (run)
        *flags |=
            host_add(&plan.schedule, plan.component, plan.a, plan.b, at[LAYOUT_SUM], tile->size * sum->components);
    else if (host_strided_possible(&strided, plan.a, plan.b, plan.c))
        *flags |= host_strided_add(&plan);
    else
        return add_turned(&plan, flags);
    return true;
}
