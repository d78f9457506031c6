/* What this machine can do at best, measured by probes that share no code with the adders they bound.
 *
 * Every probe gives the best of its rounds; the bench compares it with the medians of its rungs. */
#ifndef VECADD_LAB_BASE_PROBES_H
#define VECADD_LAB_BASE_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/status.h"
#include "lab/base/pattern.h"

/* Host: adds 32-bit words over the caller's three arrays of `n` words (12 n bytes counted), best over 1 ... threads
 * (powers of two and `threads` itself), static, dynamic and mixed partition, ordinary and non-temporal stores. The
 * arrays are aligned to a word and stay the caller's; every round writes c. The caller runs rounds between its other
 * measurements of the same arrays. */
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

/* Rates of the device's memory, over `bytes`, several times the L2. */
int limits_device(int device, size_t bytes, int rounds, struct memory_rates *rates, struct status *status);

/* Rates of the L2, over `bytes` that fit in it, by accesses that bypass the L1; `copy` is not measured: 0. */
int limits_l2(int device, size_t bytes, int rounds, struct memory_rates *rates, struct status *status);

/* Seconds of one access in a chain of dependent accesses; of one round of a block that reads two arrays side by side as
 * an addition does, a word a thread, from an otherwise idle DRAM; and of one atomic addition to an address that all
 * threads of a block add to. Best of the rounds. */
struct memory_latency {
    double l1, l2, page, dram, stream, atomic; /* page: in the L2, each in a page of its own */
};
int limits_latency(int device, int rounds, struct memory_latency *latency, struct status *status);

enum { LIMITS_LOADED = 14 };

/* DRAM under load: `bytes` of loads in flight on each multiprocessor, the seconds until they have all arrived, and all
 * multiprocessors' bytes a second. By Little's law bytes = seconds * rate of one multiprocessor. */
struct loaded_latency {
    size_t bytes;
    double seconds, rate;
};

/* Best of the rounds, over `bytes` of memory, several times the L2. Points ascend by their bytes; those that need more
 * threads than a multiprocessor holds are zero. */
int limits_loaded(int device, size_t bytes, int rounds, struct loaded_latency points[LIMITS_LOADED],
                  struct status *status);

enum { LIMITS_FRESH = 4 };

/* Seconds from kernel to kernel of a graph in which each kernel moves `bytes` that are in no cache, two thirds of them
 * read. The first entry has 24 KiB, each further entry four times as many. */
struct fresh_seconds {
    size_t bytes;
    double seconds;
};

/* Seconds. `kernel`: an empty kernel by the clock of the device rungs (csrc/lab/ladder/device_rung.h). `block`: each
 * block that an empty grid starts. `turnaround`: from block to block where a multiprocessor holds only one. `queued`,
 * `node`: each further kernel of a queue, of a graph. `issued`: the host's time to queue a kernel. `waited`: until a
 * kernel on an idle stream is done. `programmatic`: kernels that wait for the kernel ahead; `triggering` kernels then
 * let the kernel behind begin, and `node` and `block` are of these. `table`, `job`: the host writes a table of jobs,
 * copies it and launches a block a job: a table of one job, and each further job. Medians of the rounds, 64 at most. */
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

/* Device memory that the driver has left, and all of it, in bytes. */
int limits_memory(int device, size_t *left, size_t *all, struct status *status);

/* Writes device memory by a pattern, and looks it through, after what `stream` holds. Waits. The seconds are the
 * kernel's by CUDA events. */
int limits_pattern_write(int device, void *stream, uint64_t *memory, size_t words, const struct pattern *pattern,
                         double *seconds, struct status *status);
int limits_pattern_check(int device, void *stream, const uint64_t *memory, size_t words, const struct pattern *pattern,
                         struct pattern_found *found, double *seconds, struct status *status);

/* The ways from one GPU's memory into another's: by a copy engine, by a kernel of the target that reads, and by a
 * kernel of the source that writes. The kernels need peer access. */
enum peer_way { PEER_COPY, PEER_READ, PEER_WRITE, PEER_WAYS };

struct peer_limits {
    bool access;  /* each of the two GPUs may use the other's memory */
    bool atomics; /* by which atomic operations on it are the link's own */
    int rank;     /* of the link, as the driver ranks links: 0 is the fastest */
    struct {
        double rate;                /* bytes a second, best of the rounds; 0: this way was not possible */
        struct pattern_found found; /* the words that did not arrive as they were sent, of one copy */
    } way[PEER_WAYS];
};

/* `bytes`, a multiple of 16, of device `from` into memory of device `to`. Allocates plain memory, for which alone peer
 * access is switched on, and switches it off again where it was off before. */
int limits_peers(int from, int to, size_t bytes, int rounds, struct peer_limits *limits, struct status *status);

/* Host: seconds from waking idle threads until all `threads`, the caller among them, have answered, and until one other
 * thread has. Medians. Makes no CUDA call. */
struct thread_probe_limits {
    double wake, wake_one;
};
void limits_thread_probe(int threads, struct thread_probe_limits *limits);

/* For the probes themselves. */
static inline int
median_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of `rounds` figures, which it sorts. */
static inline double
probe_median(double *figures, int rounds)
{
    qsort(figures, (size_t)rounds, sizeof *figures, median_compare);
    return figures[rounds / 2];
}

#endif
