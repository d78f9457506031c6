#ifndef VECADD_LAB_BASE_MEDIAN_H
#define VECADD_LAB_BASE_MEDIAN_H

#include <stdlib.h>

static inline int
median_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of `rounds` figures, which it sorts. */
static inline double
probe_median(double *figures, int rounds)
{
    qsort(figures, (size_t)rounds, sizeof *figures, median_compare);
    return figures[rounds / 2];
}

#endif
