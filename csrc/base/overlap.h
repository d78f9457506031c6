/* Which of many arrays lie in memory that another one's sum is written to. */
#ifndef VECADD_BASE_OVERLAP_H
#define VECADD_BASE_OVERLAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
