/* Adds one tile in memory, in the calling thread alone. */
#ifndef VECADD_FILES_ADD_TILE_H
#define VECADD_FILES_ADD_TILE_H

#include <stdbool.h>

#include "base/dtype.h"
#include "base/plan.h"
#include "base/status.h"
#include "files/tiles.h"

/* How vecadd's own loops add: of dtypes that vecadd has, the sum's last. */
struct tile_adder {
    struct host_schedule schedule; /* of each tile; simd is NULL: they do not */
    enum dtype dtype[LAYOUT_OPERANDS];
};

/* Schedules the tiles, by the adder's dtypes: each is added by one thread, beside others. Returns 0, or -1 with *status
 * set. */
int tile_adder_schedule(struct tile_adder *adder, const struct tiles *tiles, struct status *status);

/* Whether the first input's memory may take the sum. */
bool add_tile_in_place(const struct tile_adder *adder, const struct tiles *tiles);

/* Adds the tiles at at[0] and at[1], whose strides tile_strides gives, into at[2], and adds the floating-point flags
 * that this raises to *flags. Returns false, without doing anything, if vecadd has no loop for it. */
bool add_tile(const struct tile_adder *adder, const struct tiles *tiles, const struct tile *tile,
              char *const at[LAYOUT_OPERANDS], unsigned *flags);

#endif
