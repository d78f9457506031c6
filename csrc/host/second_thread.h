/* Two threads or the caller alone, where the worker is awake and an L2 cache holds the sum: by what earlier calls of
 * that size took. Two processors of a virtual machine may be one core, from one second to the next: on an EPYC two
 * threads then took 1.1 to 1.4 times as long as one for 256 KiB, and half as long when they were two. For larger arrays
 * two threads then took 0.75 to 1.09 of one thread's time, and jobs tried alone took three times as long in short turns
 * of 4 MiB. Any thread may call these; they take no lock. */
#ifndef VECADD_HOST_SECOND_THREAD_H
#define VECADD_HOST_SECOND_THREAD_H

#include <stdbool.h>
#include <stddef.h>

/* Whether two threads do the next job, which writes so many bytes, elsewhere than the last one where it `moves`
 * (sum_moves.h); *timed: whether its time is to be noted. */
bool second_thread_choose(size_t bytes, bool moves, bool *timed);

/* The job took so long with two threads, or alone. */
void second_thread_note(size_t bytes, bool moves, bool together, long long ns);

/* Whether a burst of such jobs is to wake the worker. Where one thread is quicker one burst in a few does, whose first
 * jobs then try both. */
bool second_thread_is_woken(size_t bytes, bool moves);

/* Forgets all that was noted: for tests. */
void second_thread_forget(void);

#endif
