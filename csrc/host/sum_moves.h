/* Whether a program adds into the same memory again, as with an out or where it drops its sums, or into other memory
 * each time, as where it keeps them: what earlier jobs took tells nothing of jobs of the other kind. On two cores of an
 * EPYC kept sums of 256 KiB took 11 us with the threads that were quickest into an out, and 8 with their own. Any
 * thread may call it; it takes no lock. */
#ifndef VECADD_HOST_SUM_MOVES_H
#define VECADD_HOST_SUM_MOVES_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a job that writes so many bytes from `sum` on writes elsewhere than the last one of about as many. */
bool sum_moves(size_t bytes, const void *sum);

#endif
