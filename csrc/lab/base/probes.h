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

/* Link: pinned host memory, bytes a second each way alone and in sum both at once, best of the rounds. Seconds of the
 * host, beside what the bytes take: of a copy that it waits for, of queueing one, and of making and destroying a
 * stream; means of COSTS. */
struct link_limits {
    double to_device, to_host, both;
    double copy, queued_copy, stream;
};
int limits_link(int device, size_t bytes, int rounds, struct link_limits *limits, struct status *status);

enum { LIMITS_SIZES = 10 }; /* 4 KiB, then four times as many bytes each: 1 GiB is the last */

/* Seconds of a copy of so many bytes, by the host's clock until cudaMemcpy returns, of page-locked and of ordinary
 * memory; `staged`: until cudaMemcpyAsync of ordinary memory returns, which waits for the driver to have read it; and
 * by the device's clock, of page-locked memory behind another in a stream. Host memory goes round six buffers. Medians.
 */
struct copy_seconds {
    size_t bytes;
    double to_device, to_host, pageable_to_device, pageable_to_host, staged_to_device, queued_to_device, queued_to_host;
};

/* Up to `most` bytes, 4 KiB at least; and what an empty kernel takes between two copies of a stream. */
struct copy_limits {
    int count;
    struct copy_seconds sizes[LIMITS_SIZES];
    double kernel_between;
};
int limits_copies(int device, size_t most, struct copy_limits *limits, struct status *status);

/* Seconds of the host for three arrays of so many bytes made and freed, and by how much longer their first use takes
 * than the next: by cudaMalloc, and from a stream-ordered pool for a stream that is new, -1 above 64 MiB; and for one
 * of the host's page-locked memory, -1 above 4 MiB. Medians. */
struct allocation_seconds {
    size_t bytes;
    double malloc, pool, pinned;
};

/* From 2 KiB up to `most` bytes; and, from the pool, for a stream that has had memory before. */
struct allocation_limits {
    int count;
    struct allocation_seconds sizes[LIMITS_SIZES];
    double pool_again;
};
int limits_allocation(int device, size_t most, struct allocation_limits *limits, struct status *status);

/* Seconds of the host until a kernel has read two arrays of so many bytes of the host's page-locked memory and written
 * a third. Medians, up to `most` bytes an array. */
struct mapped_seconds {
    size_t bytes;
    double seconds;
};

struct mapped_limits {
    int count;
    struct mapped_seconds sizes[LIMITS_SIZES];
};
int limits_mapped(int device, size_t most, struct mapped_limits *limits, struct status *status);

/* Seconds of the host for three arrays of so many bytes of memory that host and device share: `touched`, two filled by
 * the host, all worked on by a kernel, and the third copied by the host; `made`, made and freed. Medians, up to `most`
 * bytes an array; none where the device cannot share memory with a host that works at the same time. */
struct managed_seconds {
    size_t bytes;
    double touched, made;
};

struct managed_limits {
    int count;
    struct managed_seconds sizes[LIMITS_SIZES];
};
int limits_managed(int device, size_t most, struct managed_limits *limits, struct status *status);

/* What `threads` threads of the host make of it together, the caller among them. Seconds from waking the others, who
 * were idle, until all have answered, and until a single one has; bytes a second that one thread and all together copy
 * into page-locked memory of their own, `bytes` in all; seconds of each call that queues a copy or a kernel, when one
 * thread queues and when all do, each on a stream of its own. Medians. */
struct thread_probe_limits {
    double wake, wake_one, copy_one, copy_all, call_one, call_all;
};
int limits_thread_probe(int device, int threads, size_t bytes, struct thread_probe_limits *limits,
                        struct status *status);

#endif
