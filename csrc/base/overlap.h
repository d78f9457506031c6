/* Operands that share memory: two of them, or among many the arrays that lie where another one's sum is written. */
#ifndef VECADD_BASE_OVERLAP_H
#define VECADD_BASE_OVERLAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether [p, p + bytes) and [q, q + bytes) share some but not all of their bytes. */
bool overlaps_in_part(const void *p, const void *q, size_t bytes);

/* The memory [begin, end) of an operand, begin < end. */
struct interval {
    uintptr_t begin, end;
    size_t group; /* the addition that it belongs to */
    bool written;
};

/* Whether any written interval overlaps one of another group; found[] gets the two groups, the writer's first.
 * Intervals of one group may overlap as they like. Sorts: intervals is left in another order, scratch has room for as
 * many. About 5 ns an interval where they come in a few runs of growing addresses, as those of lists made in one go do.
 */
bool overlap_find(struct interval *intervals, struct interval *scratch, size_t count, size_t found[2]);

#endif
