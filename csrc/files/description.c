#include "files/description.h"

#include <stdint.h>

#include "base/min_max.h"
#include "files/move.h"

enum { TOGETHER = 8 }; /* tiles of a stretch: what a page fault or a lock costs is then a hundredth */

void
files_prepare(struct files_run *run)
{
    struct tiles *tiles = &run->tiles;
    struct layout *layout = &tiles->layout;
    if (layout->ndim == 0) {
        layout->ndim = 1;
        layout->extent[0] = 1;
        for (int k = 0; k < LAYOUT_OPERANDS; k++)
            layout->stride[k][0] = (ssize_t)tiles->itemsize[k];
    }
    size_t widest = 1;
    for (int k = 0; k < LAYOUT_OPERANDS; k++)
        widest = larger(widest, tiles->itemsize[k]);
    run->together = tiles_turn(layout) ? 1 : TOGETHER;
    const size_t size = layout_size(layout), sum = tiles->itemsize[LAYOUT_SUM];
    const size_t most =
        larger(1, smaller(size, TOGETHER / run->together * smaller(run->window, SIZE_MAX / TOGETHER) / widest));
    /* Tiles of whole pages begin where pages of the sum's file do. */
    const size_t behind = (size_t)run->offset[LAYOUT_SUM] % FILE_PAGE;
    const bool whole_pages = most < size && most * sum % FILE_PAGE == 0 && behind % sum == 0;
    tiles_cut(tiles, most, whole_pages ? behind / sum : 0);
    run->stretches = (tiles->count - 1) / run->together + 1;
    run->threads = (int)smaller(smaller((size_t)run->threads, FILES_MOST_THREADS), run->stretches);

    struct tile whole = {.size = 0};
    ssize_t strides[LAYOUT_DIMENSIONS];
    for (int i = 0; i < layout->ndim; i++)
        whole.extent[i] = tiles->extent[i];
    run->memory = FILE_PAGE;
    for (int k = 0; k < LAYOUT_OPERANDS; k++) {
        run->room[k] = (tile_strides(tiles, &whole, k, strides) / FILE_PAGE + 2) * FILE_PAGE;
        run->memory += run->room[k] * (size_t)run->threads;
    }
}
