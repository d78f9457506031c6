/* What this machine can do at best, measured by probes that share no code with what they are the limit of.
 *
 * Every probe gives the best of its rounds; the bench compares medians of its rungs with it. */
#ifndef VECADD_LAB_BASE_PROBES_H
#define VECADD_LAB_BASE_PROBES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* Host: adds 32-bit words over the caller's three arrays of `n` words (12 n bytes counted), best over 1 ... threads
 * (powers of two and `threads` itself), static, dynamic and mixed partition, ordinary and non-temporal stores. The
 * arrays are aligned to a word and stay the caller's; c is written by every round. Rounds are run by the caller between
 * other measurements of the same arrays. */
struct limits_host;
struct limits_host *limits_host_open(const void *a, const void *b, void *c, size_t n, int threads,
                                     struct status *status);
double limits_host_round(struct limits_host *probe); /* best seconds of one pass over all variants */
void limits_host_close(struct limits_host *probe);

/* Bytes a second by CUDA events, best of the rounds: reading alone, writing alone, and copying, where half of the bytes
 * are read and half written. */
struct memory_rates {
    double read, write, copy;
};

/* Of the device's memory, over `bytes`, several times the L2. */
int limits_device(int device, size_t bytes, int rounds, struct memory_rates *rates, struct status *status);

/* Of the L2, over `bytes` that fit in it, by accesses past the L1; no copy: 0. */
int limits_l2(int device, size_t bytes, int rounds, struct memory_rates *rates, struct status *status);

/* Seconds of one access in a chain of accesses, each of which waits for the one before; of one round
 * of a block that reads two arrays side by side as an addition does, a word a thread, from DRAM with nobody else there;
 * and of one atomic addition to an address that a block's threads all add to. Best of the rounds. */
struct memory_latency {
    double l1, l2, page, dram, stream, atomic; /* page: in the L2, each in a page of its own */
};
int limits_latency(int device, int rounds, struct memory_latency *latency, struct status *status);

enum { LIMITS_FRESH = 4 };

/* Seconds from kernel to kernel of a graph, each of which moves so many bytes that are in no cache, two thirds of them
 * read: 24 KiB, then four times as many each. */
struct fresh_seconds {
    size_t bytes;
    double seconds;
};

/* Seconds: an empty kernel by the clock of the device rungs (csrc/lab/ladder/clock.h), each block that an empty grid
 * starts, from block to block where a multiprocessor holds only one, each further kernel of a queue, each further node
 * of a graph of them, what the host takes to queue one, and until one that nothing is ahead of is done. Then the same
 * of programmatic launches, each of which waits for the kernel ahead, `triggering` ones letting the kernel behind begin
 * then; its graph and its blocks are of these. And of a table of jobs that the host writes, copies and launches a block
 * a job for: until a table of one is done, and for each further job. Medians of the rounds, 64 at most. */
struct launch_limits {
    double kernel, block, turnaround, queued, node, issued, waited;
    bool has_programmatic; /* the device is of compute capability 9.0 or later */
    struct {
        double waiting, triggering, node, block, issued;
        double released; /* from the end of a kernel of that graph to the work of the next */
    } programmatic;
    double table, job;
    struct fresh_seconds fresh[LIMITS_FRESH];
};
int limits_launch(int device, int rounds, struct launch_limits *limits, struct status *status);

/* Link: pinned host memory, bytes a second each way alone and in sum both at once, best of the rounds. */
struct link_limits {
    double to_device, to_host, both;
};
int limits_link(int device, size_t bytes, int rounds, struct link_limits *limits, struct status *status);

/* Host: seconds from waking idle threads until all `threads`, the caller among them, have answered, and until a single
 * one has. Medians. Makes no CUDA call. */
struct thread_probe_limits {
    double wake, wake_one;
};
void limits_thread_probe(int threads, struct thread_probe_limits *limits);

#endif
