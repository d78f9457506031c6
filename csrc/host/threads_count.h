/* What threads.c asks of threads_count.c, beside threads_available. */
#ifndef VECADD_HOST_THREADS_COUNT_H
#define VECADD_HOST_THREADS_COUNT_H

enum { THREADS_MAX = 256 };

/* cpus_usable, asked once. */
int threads_usable_cpus(void);

/* Has both asked anew: in a forked child, which may have been moved. */
void threads_count_forget(void);

#endif
