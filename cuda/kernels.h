/* The C interface of the kernels. Every pointer is memory that the current device can access; functions check no
 * argument and never wait; n counts components (csrc/base/dtype.h). */
#ifndef VECADD_CUDA_KERNELS_H
#define VECADD_CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/layout.h"
#include "cuda/facts.h"

#ifdef __cplusplus
extern "C" {
#endif

struct add_call {
    enum component component;
    const void *a, *b; /* aligned to the component; any alignment beyond that */
    void *c;           /* may be a or b; overlaps neither in part */
    size_t n;
    unsigned *fp_flags; /* NULL, or a word into which the kernel ORs FP_OVERFLOW and FP_INVALID (csrc/base/dtype.h),
                         * by NumPy's rules: overflow if finite inputs gave an infinity (for bfloat16: if their float32
                         * sum is one), invalid if a NaN appeared or a signalling NaN was read */
    cudaStream_t stream;
    bool programmatic; /* lets the kernel begin before the stream's preceding kernel has ended, and wait for it inside;
                        * saves 0.6 us of host time. Compute capability 9.0 and up */
    struct kernel_launch *describe; /* NULL, or gets the launch's shape; nothing is then queued */

    /* Set from a launch config (csrc/gpu/launch_configs.h). All 0 is right for any call. */
    unsigned block;       /* threads a block, a multiple of 32; 0: 256 */
    enum add_loads loads; /* ignored (plain) if fp_flags is set: such calls wait for a link 70 times as slow */
    size_t demoted; /* the last bytes of each input that lose evict_last after they are added, in whole 128-byte lines
                     * that are inside the operand */
};

/* add.cu: `tuned`. Returns cudaErrorInvalidConfiguration if a block is not whole warps or the grid is too large. */
cudaError_t add_launch(const struct add_call *call);

/* Loads every kernel of add.cu into the current device's context, so that CUDA loads none lazily inside a capture. */
cudaError_t add_load(void);

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

/* strided.cu: any layout, any dtypes. a, b and c point to first elements, at any alignment; ignored for scalars. c
 * overlaps an input only if each element of c replaces the element that it is computed from; c does not overlap itself.
 * Sums of 2^31 elements or more are queued in pieces. */
cudaError_t strided_launch(const struct strided *add, const void *a, const void *b, void *c, cudaStream_t stream);

/* strided_launch in pieces of `most` elements at most, 1 to 2^31 - 1, so that tests can cut small sums. */
cudaError_t strided_launch_pieces(const struct strided *add, const void *a, const void *b, void *c, size_t most,
                                  cudaStream_t stream);
cudaError_t strided_load(void);

#ifdef __cplusplus
}
#endif
#endif
