/* What this machine can do at best, measured by probes that share no code with the adders they bound. The bench
 * compares it with the medians of its rungs. */
#ifndef VECADD_LAB_BASE_PROBES_H
#define VECADD_LAB_BASE_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/status.h"
#include "lab/base/pattern.h"

/* A request to a probe of a device: how much memory it measures, and how many rounds. */
struct probe_request {
    int device;
    size_t bytes;
    int rounds;
};

/* Bytes a second by CUDA events, best of the rounds: reading alone, writing alone, and copying, where half of the bytes
 * are read and half written. */
struct memory_rates {
    double read, write, copy;
};

/* Bytes a second between page-locked memory and the device: each way alone, and in sum both at once; best of the
 * rounds. */
struct link_rates {
    double to_device, to_host, both;
};

/* Seconds of one access in a chain of dependent accesses; of one round of a block that reads two arrays side by side as
 * an addition does, a word a thread, from an otherwise idle DRAM; and of one atomic addition to an address that all
 * threads of a block add to. Best of the rounds. */
struct memory_latency {
    double l1, l2, page, dram, stream, atomic; /* page: in the L2, each in a page of its own */
};

enum { LIMITS_LOADED = 14 };

/* DRAM under load: `bytes` of loads in flight on each multiprocessor, the seconds until they have all arrived, and all
 * multiprocessors' bytes a second. By Little's law bytes = seconds * rate of one multiprocessor. */
struct loaded_latency {
    size_t bytes;
    double seconds, rate;
};

enum { LIMITS_FRESH = 4 };

/* Seconds from kernel to kernel of a graph in which each kernel moves `bytes` that are in no cache, two thirds of them
 * read. The first entry has 24 KiB, each further entry four times as many. */
struct fresh_seconds {
    size_t bytes;
    double seconds;
};

/* Seconds. `kernel`: an empty kernel by the clock of the device rungs (csrc/lab/ladder/device_rung.h). `block`: each
 * block that an empty grid starts. `turnaround`: from block to block where a multiprocessor has room for one. `queued`,
 * `node`: each further kernel of a queue, of a graph. `issued`: the host's time to queue a kernel. `waited`: until a
 * kernel on an idle stream is done. `table`, `job`: the host writes a table of jobs, copies it and launches a block a
 * job: a table of one job, and each further job.
 *
 * `programmatic`, NAN below compute capability 9.0: kernels that wait for the kernel ahead; `triggering` kernels then
 * let the next kernel begin, and `node` and `block` are of these. Medians of the rounds, 64 at most. */
struct launch_seconds {
    double kernel, block, turnaround, queued, node, issued, waited, table, job;
    struct {
        double waiting, triggering, node, block, issued;
        double released; /* from the end of a kernel of that graph to the work of the next */
    } programmatic;
    struct fresh_seconds fresh[LIMITS_FRESH];
};

union probe_found {
    struct {
        struct memory_rates memory, l2; /* of the L2 by accesses that bypass the L1, over a quarter of it; no `copy` */
    } rates;
    struct link_rates link;
    struct memory_latency latency;
    struct loaded_latency
        loaded[LIMITS_LOADED]; /* ascending; zero where they need more threads than there is room for */
    struct launch_seconds launches;
};

/* The probes of a device. `bytes`: of `rates` and `loaded` several times the L2, of `link` what crosses it; the other
 * two take none. */
typedef int device_probe(const struct probe_request *request, union probe_found *found, struct status *status);
device_probe probe_rates, probe_link, probe_latency, probe_loaded, probe_launches;

/* Device memory that the driver has left, and all of it, in bytes. */
int limits_memory(int device, size_t *left, size_t *all, struct status *status);

/* pattern_host() for device memory, after what `stream` has queued. Waits. The seconds are the kernel's by CUDA
 * events. */
int pattern_device(int device, void *stream, const struct pattern_words *words, struct pattern_found *found,
                   double *seconds, struct status *status);

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
struct wake_limits {
    double wake, wake_one;
};
void limits_wake(int threads, struct wake_limits *limits);

/* For the probes themselves. */
static inline int
median_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of `rounds` figures, which it sorts. */
static inline double
median(double *figures, int rounds)
{
    qsort(figures, (size_t)rounds, sizeof *figures, median_compare);
    return figures[rounds / 2];
}

#endif
