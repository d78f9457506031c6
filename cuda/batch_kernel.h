/* The C interface of the kernel that runs many additions in one launch. It checks no argument and never waits. */
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
    BATCH_MAX = 1023,            /* additions per launch: as many as fit in 32764 bytes of kernel parameters */
    BATCH_MOST_BYTES = 1 << 27,  /* of one addition's c: the table has 28 bits for this number */
    BATCH_TILE_BYTES = 16 << 10, /* of c, added by one block */
};

/* c = a + b over `bytes` bytes of components, 1 to BATCH_MOST_BYTES. Pointers are aligned to the component. c may be a
 * or b; it overlaps neither in part, nor any operand of the other additions. */
struct batch_segment {
    const void *a, *b;
    void *c;
    uint32_t bytes; /* of each array */
    enum component component;
};

/* batch.cu: queues the additions, 1 to BATCH_MAX of them, in one launch. The segments may change once it returns. */
cudaError_t batch_launch(const struct batch_segment *segments, size_t count, cudaStream_t stream);

/* Loads the kernels into the current device's context, so that CUDA loads none lazily inside a capture. */
cudaError_t batch_load(void);

#ifdef __cplusplus
}
#endif
#endif
