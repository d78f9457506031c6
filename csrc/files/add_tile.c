#include "files/add_tile.h"

#include <string.h>

#include "base/plan.h"
#include "base/strided.h"
#include "files/add_turned.h"
#include "host/add.h"
#include "host/strided.h"

bool
add_tile_in_place(const struct tile_adder *adder, const struct tiles *tiles)
{
    const struct layout *layout = &tiles->layout;
    const size_t strides = (size_t)layout->ndim * sizeof layout->stride[0][0];
    return adder->simd && adder->dtype[0] == adder->dtype[LAYOUT_SUM] &&
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
    if (!adder->simd)
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
                        .simd = adder->simd,
                        .schedule = host_schedule_with(sum->component, tile->size * sum->components, 1, false),
                        .strided = &strided,
                        .device = -1};
    layout_of(tiles, tile, &strided.layout);

    bool run = dtype[0] == dtype[LAYOUT_SUM] && dtype[1] == dtype[LAYOUT_SUM];
    for (int k = 0; k < LAYOUT_OPERANDS && run; k++)
        run = layout_is_dense(&strided.layout, k, sum->itemsize);
    if (run)
        *flags |= host_add(plan.simd, &plan.schedule, plan.component, plan.a, plan.b, at[LAYOUT_SUM],
                           tile->size * sum->components);
    else if (host_strided_possible(&strided, plan.a, plan.b, plan.c))
        *flags |= host_strided_add(&plan);
    else
        return add_turned(&plan, flags);
    return true;
}
