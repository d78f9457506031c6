/* The kernels, as plain C sees them. Every pointer is device-accessible memory of the current device; nothing is
 * checked here, nothing waits, and n counts lanes (csrc/core/dtype.h). */
#ifndef VECADD_KERNELS_H
#define VECADD_KERNELS_H

#include <cuda_runtime_api.h>
#include <stddef.h>

#include "dtype.h"
#include "kernel_launch.h"

#ifdef __cplusplus
extern "C" {
#endif

struct add_call {
    enum lane lane;
    const void *a, *b; /* aligned to the lane; any alignment beyond that */
    void *c;           /* may be a or b; overlaps neither in part */
    size_t n;
    unsigned *fp_flags; /* NULL, or a word that gets FP_OVERFLOW and FP_INVALID (csrc/core/fpflags.h) OR-ed in, by
                         * NumPy's rules: overflow where finite inputs gave an infinity (for bfloat16: where their
                         * float32 sum did), invalid where a NaN appeared or a signalling NaN was read */
    cudaStream_t stream;
    struct kernel_launch
        *describe; /* NULL, or what gets the launch's shape in place of the stream getting the kernel */
};

/* add.cu: `tuned`. */
cudaError_t add_launch(const struct add_call *call);

/* Loads every kernel of add.cu into the current device's context, so that none is loaded lazily inside a capture. */
cudaError_t add_load(void);

/* limits.cu: the probes that measure the memory; no code in common with the kernels they are the limit of. What is read
 * is all zero, which leaves *sink as it is; a byte that is not is seen there. */
cudaError_t limits_read_launch(const void *memory, size_t bytes, unsigned *sink, cudaStream_t stream);
cudaError_t limits_write_launch(void *memory, size_t bytes, unsigned value, cudaStream_t stream);

/* delay.cu: keeps the stream busy for that many clock cycles of the GPU. */
cudaError_t delay_launch(unsigned cycles, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
