/* How many threads there are to add by. */
#ifndef VECADD_HOST_THREADS_COUNT_H
#define VECADD_HOST_THREADS_COUNT_H

#include <stdbool.h>

/* How many threads a job may use: min(affinity mask, control group's cpu quota), or VECADD_NUM_THREADS; at least 1. */
int threads_available(void);

/* Whether additions of the calling thread are to run on it alone: it is one of several that add at once. */
void threads_set_alone(bool alone);
bool threads_alone(void);

enum { THREADS_MAX = 256 };

/* cpus_usable, asked once. */
int threads_usable_cpus(void);

/* Has both asked anew: in a forked child, which may have been moved. */
void threads_count_forget(void);

#endif
