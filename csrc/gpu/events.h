/* Reused events without timing.
 *
 * Creating and destroying one takes 270 ns, and waits while any stream's queue is full: both take a lock of the
 * context. */
#ifndef VECADD_GPU_EVENTS_H
#define VECADD_GPU_EVENTS_H

#include <cuda_runtime_api.h>

#include "gpu/state.h"

/* An event of the current device, whose state is `state`. It is the caller's alone until given back. */
cudaError_t event_take(struct device_state *state, cudaEvent_t *event);
void event_give(struct device_state *state, cudaEvent_t event);

#endif
