/* Finds operands that share memory: two operands, or in a batch an addition's array that another addition writes to. */
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

/* Whether any written interval overlaps an interval of another group; found[] gets the two groups, the writer's first.
 * Intervals of one group may overlap. Reorders `intervals`; `scratch` has room for as many. Takes about 6 ns an
 * interval, whatever their order. */
bool overlap_find(struct interval *intervals, struct interval *scratch, size_t count, size_t found[2]);

#endif
