/* What the probes of a device share: a stream of their own, memory, and the time between two events. */
#ifndef VECADD_LAB_LIMITS_PROBE_H
#define VECADD_LAB_LIMITS_PROBE_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/util.h"
#include "gpu/state.h"
#include "lab/base/probes.h"

struct probe {
    struct device_scope scope;
    bool entered; /* the thread is on the device, until probe_leave or probe_close */
    cudaStream_t stream;
    cudaEvent_t begin, end;
    void *memory;
    size_t bytes; /* of `memory`; 0: none */
    void *sink;   /* one word: keeps the compiler from removing reads */
};

/* Fills in *probe and enters the device. After a failure the caller calls probe_close() too. */
int probe_open(struct probe *probe, int device, size_t bytes, struct status *status);
void probe_close(struct probe *probe);

/* The events alone, for work on another stream. After a failure the caller destroys them too. */
int probe_make_events(struct probe *probe, struct status *status);
void probe_destroy_events(const struct probe *probe);

/* For a probe beside another device's. probe_close() takes it wherever the thread is. */
int probe_enter(struct probe *probe, struct status *status);
void probe_leave(struct probe *probe);

/* Queues work on probe->stream. */
typedef cudaError_t probe_launch(const struct probe *probe, const void *argument);

/* Work to be timed by the events before and after it. */
struct probe_work {
    probe_launch *launch;
    const void *argument; /* of both launches */
    probe_launch *before; /* NULL, or queues what comes before and is not timed */
    unsigned head_start;  /* cycles for which a kernel keeps the stream busy first, so that the events do not time the
                           * host; 0: no kernel */
    const char *what;     /* names the work in messages; NULL: cudaLaunchKernel */
};

/* Waits for the work and gives its seconds. */
int probe_time(const struct probe *probe, const struct probe_work *work, double *seconds, struct status *status);

/* The best, and the median, of `rounds` rounds after one that warms up. */
int probe_best(const struct probe *probe, const struct probe_work *work, int rounds, double *seconds,
               struct status *status);
int probe_median(const struct probe *probe, const struct probe_work *work, int rounds, double *seconds,
                 struct status *status);

enum { ROUNDS_MAX = 64 }; /* of medians */

static inline int
fewer(int rounds, int most)
{
    return rounds < most ? rounds : most;
}

#endif
