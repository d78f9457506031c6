/* Queueing an addition of any layout: for queue.c. */
#ifndef VECADD_GPU_STRIDED_H
#define VECADD_GPU_STRIDED_H

#include <cuda_runtime_api.h>

#include "base/plan.h"

/* Bytes of memory that plan->strided's sum has to go through, because out overlaps an input; 0: none. */
size_t strided_temporary(const struct plan *plan);

/* Queues plan->strided on plan->stream, by way of `temporary` where that is not NULL. Of a sum of more than one launch
 * some may be queued when it fails. */
cudaError_t strided_queue(const struct plan *plan, void *temporary);

#endif
