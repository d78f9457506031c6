/* An addition of arrays in files, cut into tiles: with as few reads and writes as possible, in memory of a given size.
 *
 * The axes are those of a layout (base/layout.h), the first one innermost in the sum's file: two files of one shape and
 * order have a single axis. */
#ifndef VECADD_FILES_TILES_H
#define VECADD_FILES_TILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/layout.h"

struct tiles {
    struct layout layout; /* strides in the files */
    size_t itemsize[LAYOUT_OPERANDS];
    size_t count;
    ssize_t extent[LAYOUT_DIMENSIONS]; /* of a tile; those at an axis' end are smaller */
};

struct tile {
    ssize_t start[LAYOUT_DIMENSIONS], extent[LAYOUT_DIMENSIONS];
    size_t size; /* elements */
};

/* Whether some array has other neighbours than another: then a tile needs breadth along two axes. */
bool tiles_turn(const struct layout *layout);

/* Cuts the addition into tiles of at most `most` elements, of long runs in each of the files. */
void tiles_cut(struct tiles *tiles, size_t most);

/* The tile of that number; tiles are numbered in the order of the sum's elements. */
void tiles_at(const struct tiles *tiles, size_t number, struct tile *tile);

/* Takes one run of a tile: `bytes` of the file, from `at` bytes after the array's start on. Returns 0 to go on. */
typedef int tile_run_function(void *context, off_t at, size_t bytes);

/* Hands each run of a tile in that operand's file to `run`, in their order. Returns 0, or what `run` returned last. */
int tile_each_run(const struct tiles *tiles, const struct tile *tile, int operand, tile_run_function *run,
                  void *context);

/* The strides in memory of a tile whose runs were read one after the other: the bytes from one element to the next
 * along each axis, 0 where the operand is broadcast. Returns the tile's bytes. */
size_t tile_strides(const struct tiles *tiles, const struct tile *tile, int operand, ssize_t strides[]);

#endif
