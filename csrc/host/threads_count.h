/* The number of threads that additions may use. */
#ifndef VECADD_HOST_THREADS_COUNT_H
#define VECADD_HOST_THREADS_COUNT_H

enum { THREADS_MAX = 256 };

/* The threads that a job may use: threads_choose()'s, or threads_usual(). One processor is looked at again each time.
 */
int threads_available(void);

/* VECADD_NUM_THREADS, or min(affinity mask, control group's cpu quota); 1 to THREADS_MAX. */
int threads_usual(void);

/* Has jobs from now on use `count` threads, 1 to THREADS_MAX, in every thread and in children that are forked from now
 * on. Returns the number so far. */
int threads_choose(int count);

/* The environment's variable, and its text if it is set and is no number from 1 to THREADS_MAX; else NULL. */
#define THREADS_VARIABLE "VECADD_NUM_THREADS"
const char *threads_invalid_variable(void);

/* cpus_usable(), remembered until threads_count_forget(). */
int threads_usable_cpus(void);

/* Forgets what was counted, not what was chosen: a forked child may have other limits, a caller another mask. */
void threads_count_forget(void);

#endif
