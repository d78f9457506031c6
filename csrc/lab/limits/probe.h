/* What the probes of a device share: a stream of their own, memory, and the time between two events. */
#ifndef VECADD_LAB_LIMITS_PROBE_H
#define VECADD_LAB_LIMITS_PROBE_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#include "base/now.h"
#include "base/status.h"
#include "gpu/state.h"
#include "lab/base/probes.h"

struct probe {
    cudaStream_t stream;
    cudaEvent_t begin, end;
    void *memory; /* of `bytes` bytes; NULL for 0 */
    void *sink;   /* one word: keeps the compiler from removing reads */
};

/* Fills in *probe, all zero before. After a failure the caller calls probe_close() too. */
int probe_open(struct probe *probe, const struct device_scope *scope, size_t bytes, struct status *status);
void probe_close(const struct probe *probe);

/* Queues the work to be timed on probe->stream. */
typedef cudaError_t probe_launch(const struct probe *probe, const void *argument);

/* Waits for launch(probe, argument) and gives the seconds between the events before and after it. A kernel keeps the
 * stream busy for head_start cycles first (0: no kernel), so that the events do not time the host. `what` names the
 * work in messages. */
int probe_time(const struct probe *probe, unsigned head_start, probe_launch *launch, const void *argument,
               const char *what, double *seconds, struct status *status);

/* Evicts everything from the calling core's own caches. */
void probe_disturb(void);

#endif
