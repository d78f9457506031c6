/* What this machine can do at best, measured by probes that share no code with what they are the limit of.
 *
 * Every probe gives the best of its rounds; the bench compares medians of its rungs with it. */
#ifndef VECADD_PROBES_H
#define VECADD_PROBES_H

#include <stddef.h>

#include "status.h"

/* Host: adds 32-bit words over the caller's three arrays of `n` words (12 n bytes counted), best over 1 ... threads
 * (powers of two and `threads` itself), static, dynamic and mixed partition, ordinary and non-temporal stores. The
 * arrays are aligned to a word and stay the caller's; c is written by every round. Rounds are run by the caller between
 * other measurements of the same arrays. */
struct limits_host;
struct limits_host *limits_host_open(const void *a, const void *b, void *c, size_t n, int threads,
                                     struct status *status);
double limits_host_round(struct limits_host *probe); /* best seconds of one pass over all variants */
void limits_host_close(struct limits_host *probe);

/* Device: read-only and write-only rates over `bytes` (several times the L2), bytes a second, by CUDA events. */
int limits_device(int device, size_t bytes, int rounds, double *read, double *write, struct status *status);

/* Link: pinned host memory, bytes a second each way alone and in sum both at once. */
int limits_link(int device, size_t bytes, int rounds, double *to_device, double *to_host, double *both,
                struct status *status);

#endif
