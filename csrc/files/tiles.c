#include "files/tiles.h"

#include <string.h>

#include "base/util.h"

/* Lists the axes along which an operand is not broadcast, in its file's order, the contiguous one first. Returns
 * their number. */
static int
order_of(const struct layout *layout, int operand, int axes[])
{
    const ssize_t *stride = layout->stride[operand];
    int count = 0;
    for (int axis = 0; axis < layout->ndim; axis++) {
        if (stride[axis] == 0)
            continue;
        int at = count++;
        for (; at > 0 && stride[axes[at - 1]] > stride[axis]; at--)
            axes[at] = axes[at - 1];
        axes[at] = axis;
    }
    return count;
}

bool
tiles_turn(const struct layout *layout)
{
    int axes[LAYOUT_DIMENSIONS];
    for (int k = 0; k < LAYOUT_OPERANDS; k++) {
        const int count = order_of(layout, k, axes);
        for (int i = 1; i < count; i++)
            if (axes[i] < axes[i - 1])
                return true;
    }
    return false;
}

/* The whole part of the square root: with so long a run in each file, a tile of n elements serves two orders equally.
 */
static size_t
root_of(size_t n)
{
    size_t root = 1;
    while ((root + 1) * (root + 1) <= n)
        root++;
    return root;
}

/* Widens the tile along the operand's axes, innermost first, until its runs there have `goal` elements or the tile has
 * `most`. */
static void
widen(struct tiles *tiles, int operand, size_t goal, size_t most)
{
    const struct layout *layout = &tiles->layout;
    int axes[LAYOUT_DIMENSIONS];
    const int count = order_of(layout, operand, axes);
    size_t run = 1, size = 1;
    for (int i = 0; i < layout->ndim; i++)
        size *= (size_t)tiles->extent[i];
    for (int i = 0; i < count; i++) {
        const size_t whole = (size_t)layout->extent[axes[i]], now = (size_t)tiles->extent[axes[i]];
        const size_t room = most / (size / now), wish = (goal - 1) / run + 1;
        const size_t extent = smaller(whole, larger(now, smaller(room, wish)));
        size = size / now * extent;
        tiles->extent[axes[i]] = (ssize_t)extent;
        run *= extent;
        if (extent < whole)
            return;
    }
}

/* Tiles along an axis; the last of them may be smaller. */
static size_t
tiles_along(const struct tiles *tiles, int axis)
{
    return (size_t)((tiles->layout.extent[axis] - 1) / tiles->extent[axis] + 1);
}

void
tiles_cut(struct tiles *tiles, size_t most)
{
    static const int order[] = {LAYOUT_SUM, 0, 1};
    const size_t root = root_of(most);
    for (int i = 0; i < tiles->layout.ndim; i++)
        tiles->extent[i] = 1;
    for (int i = 0; i < LAYOUT_OPERANDS; i++)
        widen(tiles, order[i], root, most);
    widen(tiles, LAYOUT_SUM, most, most);
    tiles->count = 1;
    for (int i = 0; i < tiles->layout.ndim; i++)
        tiles->count *= tiles_along(tiles, i);
}

void
tiles_at(const struct tiles *tiles, size_t number, struct tile *tile)
{
    tile->size = 1;
    for (int i = 0; i < tiles->layout.ndim; i++) {
        const size_t along = tiles_along(tiles, i);
        tile->start[i] = (ssize_t)(number % along) * tiles->extent[i];
        const ssize_t left = tiles->layout.extent[i] - tile->start[i];
        tile->extent[i] = left < tiles->extent[i] ? left : tiles->extent[i];
        tile->size *= (size_t)tile->extent[i];
        number /= along;
    }
}

int
tile_each_run(const struct tiles *tiles, const struct tile *tile, int operand, tile_run_function *run, void *context)
{
    const struct layout *layout = &tiles->layout;
    const ssize_t *stride = layout->stride[operand];
    int axes[LAYOUT_DIMENSIONS], inner = 0, failed = 0;
    const int count = order_of(layout, operand, axes);
    size_t bytes = tiles->itemsize[operand];
    while (inner < count) {
        const int axis = axes[inner++];
        bytes *= (size_t)tile->extent[axis];
        if (tile->extent[axis] < layout->extent[axis])
            break;
    }
    off_t at = 0;
    for (int i = 0; i < count; i++)
        at += tile->start[axes[i]] * stride[axes[i]];

    ssize_t index[LAYOUT_DIMENSIONS] = {0};
    for (int i = inner; !failed;) {
        failed = run(context, at, bytes);
        for (i = inner; i < count; i++) {
            const int axis = axes[i];
            at += stride[axis];
            if (++index[i] < tile->extent[axis])
                break;
            at -= index[i] * stride[axis];
            index[i] = 0;
        }
        if (i == count)
            break;
    }
    return failed;
}

size_t
tile_strides(const struct tiles *tiles, const struct tile *tile, int operand, ssize_t strides[])
{
    int axes[LAYOUT_DIMENSIONS];
    const int count = order_of(&tiles->layout, operand, axes);
    size_t bytes = tiles->itemsize[operand];
    memset(strides, 0, (size_t)tiles->layout.ndim * sizeof *strides);
    for (int i = 0; i < count; i++) {
        strides[axes[i]] = (ssize_t)bytes;
        bytes *= (size_t)tile->extent[axes[i]];
    }
    return bytes;
}
