/* Many additions in one launch, as plain C sees it. Nothing is checked here and nothing waits. */
#ifndef VECADD_CUDA_BATCH_KERNEL_H
#define VECADD_CUDA_BATCH_KERNEL_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    BATCH_MAX = 1023,            /* additions of one launch: as many as 32764 bytes of kernel parameters hold */
    BATCH_MOST_BYTES = 1 << 27,  /* of one addition's c: the table has 28 bits for them */
    BATCH_TILE_BYTES = 16 << 10, /* of c, that one block adds */
};

/* c = a + b over components of so many bytes, 1 to BATCH_MOST_BYTES: any alignment beyond the component's; c may be a
 * or b, and overlaps neither in part, nor anything of the other additions. */
struct batch_segment {
    const void *a, *b;
    void *c;
    uint32_t bytes; /* of each */
    enum component component;
};

/* batch.cu: queues the additions, 1 to BATCH_MAX of them, in one launch. The segments may change once it returns. */
cudaError_t batch_launch(const struct batch_segment *segments, size_t count, cudaStream_t stream);

/* Loads its kernels into the current device's context, so that none is loaded lazily inside a capture. */
cudaError_t batch_load(void);

#ifdef __cplusplus
}
#endif
#endif
