/* Many independent additions as one piece of work: one launch on a device, one job of the threads on the host.
 *
 * batch.c and batch_graph.c are the device's half, which no_cuda.c stands in for; batch_host.c the host's. */
#ifndef VECADD_BATCH_H
#define VECADD_BATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "dtype.h"
#include "host.h"
#include "status.h"

/* c = a + b over n lanes. c may be a or b; it overlaps neither in part, nor an operand of another addition. */
struct batch_add {
    const void *a, *b;
    void *c;
    size_t n;
    enum lane lane;
};

struct device_batch {
    const struct batch_add *adds;
    size_t count;
    int device;
    void *stream;
    void *const *join; /* the operands' other streams, each once: as those of struct plan */
    size_t joins;
};

/* Queues the additions, all of one device, in as few launches as their table allows: 1023 a launch, of 128 MiB at most.
 * No partial set of them is left queued when it fails, for whose memory could be freed meanwhile. Returns 0, or -1 with
 * *status set. */
int device_add_many(const struct device_batch *batch, struct status *status);

/* Additions that are made again and again: their launches as a CUDA graph. */
struct batch_graph;

/* `batch` with all that it points to, and the memory of its operands, stays as long as it is run. The caller closes it.
 * Returns 0, or -1 with *status set and *graph NULL. */
int batch_graph_open(struct batch_graph **graph, const struct device_batch *batch, struct status *status);

/* As device_add_many, behind its own earlier runs; from any thread, one at a time: the others wait, so the caller holds
 * no lock. A graph is no part of a capture: where the stream captures, the kernels are launched, ordered with
 * those of the other streams that capture too. */
int batch_graph_run(struct batch_graph *graph, struct status *status);

/* What is queued goes on. For destructors: never fails, makes no CUDA call in a forked child or after the runtime has
 * shut down, and takes NULL. */
void batch_graph_close(struct batch_graph *graph);

/* How additions of so many bytes of sums together are run on the host. */
struct host_schedule host_add_many_schedule(size_t bytes);

/* Adds in host memory; *flags gets the floating-point flags that any of them raised (fpenv.h). Returns 0, or -1 where
 * there is no memory for a number each. */
int host_add_many(const struct host_simd *simd, const struct host_schedule *schedule, const struct batch_add *adds,
                  size_t count, unsigned *flags, struct status *status);

#endif
