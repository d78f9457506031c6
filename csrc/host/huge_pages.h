/* Several threads fault in the huge pages that new sums are about to be written on. */
#ifndef VECADD_HOST_HUGE_PAGES_H
#define VECADD_HOST_HUGE_PAGES_H

#include "host/huge_region.h"

/* Faults in the pages, each by one thread, and the caller one at most: pages of busy workers are left to the threads
 * that write there. What is written there meanwhile stays. On an EPYC one thread zeroes a huge page in 180 us, and two
 * threads two of them in 195. Where other programs keep the processors busy the caller waits 4 to 11 ms for a worker
 * that has lost its own: after such waits the next pages are left to the threads that write. */
void huge_pages_back(struct huge_pages pages);

/* Forgets such waits: for tests. */
void huge_pages_forget(void);

#endif
