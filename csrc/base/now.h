/* The host's monotonic clock. */
#ifndef VECADD_BASE_NOW_H
#define VECADD_BASE_NOW_H

#include <time.h>

static inline double
now_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static inline long long
now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

#endif
