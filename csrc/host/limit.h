/* How fast this machine can add host memory at best, by a probe that shares no code with the adders that it bounds: a
 * receipt compares a line's additions with it, and the bench its rungs. */
#ifndef VECADD_HOST_LIMIT_H
#define VECADD_HOST_LIMIT_H

#include <stddef.h>

#include "base/status.h"

/* Adds 32-bit words over the caller's three arrays of `n` words (12 n bytes counted), best over 1 ... threads
 * (powers of two and `threads` itself), static, dynamic and mixed partition, ordinary and non-temporal stores. The
 * arrays are aligned to a word and stay the caller's; every round writes c. The caller runs rounds between its other
 * measurements of the same arrays. */
struct limits_host;
struct limits_host *limits_host_open(const void *a, const void *b, void *c, size_t n, int threads,
                                     struct status *status);
double limits_host_round(struct limits_host *probe); /* best seconds of one pass over all variants */
void limits_host_close(struct limits_host *probe);

#endif
