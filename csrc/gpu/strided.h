/* Queues an addition of any layout, for queue.c. */
#ifndef VECADD_GPU_STRIDED_H
#define VECADD_GPU_STRIDED_H

#include <cuda_runtime_api.h>

#include "base/plan.h"

/* Bytes of the temporary that plan->strided's sum goes through where out overlaps an input; 0: none needed. */
size_t strided_temporary(const struct plan *plan);

/* Queues plan->strided on plan->stream, through `temporary` where that is not NULL. A sum of several launches may be
 * partly queued when it fails. */
cudaError_t strided_queue(const struct plan *plan, void *temporary);

#endif
