/* What the probes of a device share: a stream of their own, memory, and the time between two events. */
#ifndef VECADD_LAB_LIMITS_PROBE_H
#define VECADD_LAB_LIMITS_PROBE_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#include "base/now.h"
#include "base/status.h"
#include "gpu/state.h"
#include "lab/base/median.h"
#include "lab/base/probes.h"

struct probe {
    cudaStream_t stream;
    cudaEvent_t begin, end;
    void *memory; /* as many bytes as asked for, 0: NULL */
    void *sink;   /* one word: keeps the reads from being optimised away */
};

/* Fills in *probe, all zero before. Where it fails, probe_close() still has to release what is there. */
int probe_open(struct probe *probe, const struct device_scope *scope, size_t bytes, struct status *status);
void probe_close(const struct probe *probe);

/* Queues what is to be timed on probe->stream. */
typedef cudaError_t probe_launch(const struct probe *probe, const void *argument);

/* Waits for launch(probe, argument) and gives the seconds between events on both sides of it. The stream is busy for
 * head_start cycles first, 0: not at all, so that the events do not time the host. `what` names it in a message. */
int probe_time(const struct probe *probe, unsigned head_start, probe_launch *launch, const void *argument,
               const char *what, double *seconds, struct status *status);

/* table.c: seconds of the host until a table of one job is written, copied, launched for and done, and for each further
 * job; at most 64 rounds. */
int limits_table(const struct probe *probe, const struct device_scope *scope, int rounds, double *table, double *job,
                 struct status *status);

/* fresh.c: fills in `sizes`; `kernel` is what an empty kernel takes. At most 5 rounds. */
int limits_fresh(const struct device_scope *scope, int rounds, double kernel, struct fresh_seconds sizes[LIMITS_FRESH],
                 struct status *status);

/* Leaves nothing in the caches that a processor has for itself. */
void probe_disturb(void);

#endif
