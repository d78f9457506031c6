/* The number of threads that additions may use. */
#ifndef VECADD_HOST_THREADS_COUNT_H
#define VECADD_HOST_THREADS_COUNT_H

#include <stdbool.h>

/* The threads that a job may use: VECADD_NUM_THREADS, or min(affinity mask, control group's cpu quota); at least 1. */
int threads_available(void);

/* Whether additions of the calling thread run on it alone, because several threads add at once. */
void threads_set_alone(bool alone);
bool threads_alone(void);

enum { THREADS_MAX = 256 };

/* cpus_usable(), called once and remembered. */
int threads_usable_cpus(void);

/* Forgets both numbers: a forked child may have other limits. */
void threads_count_forget(void);

#endif
