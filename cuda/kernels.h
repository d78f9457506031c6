/* The kernels, as plain C sees them. Every pointer is device-accessible memory of the current device; nothing is
 * checked here, nothing waits, and n counts components (csrc/base/dtype.h). */
#ifndef VECADD_CUDA_KERNELS_H
#define VECADD_CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/strided.h"
#include "cuda/add_loads.h"
#include "cuda/kernel_launch.h"

#ifdef __cplusplus
extern "C" {
#endif

struct add_call {
    enum component component;
    const void *a, *b; /* aligned to the component; any alignment beyond that */
    void *c;           /* may be a or b; overlaps neither in part */
    size_t n;
    unsigned *fp_flags; /* NULL, or a word that gets FP_OVERFLOW and FP_INVALID (csrc/base/fpflags.h) OR-ed in, by
                         * NumPy's rules: overflow where finite inputs gave an infinity (for bfloat16: where their
                         * float32 sum did), invalid where a NaN appeared or a signalling NaN was read */
    cudaStream_t stream;
    bool programmatic; /* may begin before the kernel ahead of it in the stream has ended, for which it waits; 0.6 us
                        * less of the host's time. On compute capability 9.0 and up */
    struct kernel_launch
        *describe; /* NULL, or what gets the launch's shape in place of the stream getting the kernel */

    /* How the bytes are moved: what a launch config (csrc/gpu/launch_configs.h) fills in. All 0 is right for any call.
     */
    unsigned block;       /* threads a block, a multiple of 32; 0: 256 */
    enum add_loads loads; /* taken as plain where flags are asked for: that call waits for a link 70 times as slow */
    size_t demoted;       /* of each input the last so many bytes lose evict_last again once they are added: every
                           * whole 128-byte line in there, none that reaches beyond the operand */
};

/* add.cu: `tuned`. cudaErrorInvalidConfiguration for a block that is not whole warps and a grid that is too large. */
cudaError_t add_launch(const struct add_call *call);

/* Loads every kernel of add.cu into the current device's context, so that none is loaded lazily inside a capture. */
cudaError_t add_load(void);

/* strided.cu: any layout, any dtypes. a, b and c are the addresses of first elements, of any alignment; those of
 * scalars are not looked at. c overlaps neither input unless each of its elements takes the place of its operand, and
 * not itself. Sums of 2^31 elements or more are queued in pieces. */
cudaError_t strided_launch(const struct strided *add, const void *a, const void *b, void *c, cudaStream_t stream);

/* strided_launch in pieces of `most` elements at most, 1 to 2^31 - 1: a small sum shows how a large one is cut. */
cudaError_t strided_launch_pieces(const struct strided *add, const void *a, const void *b, void *c, size_t most,
                                  cudaStream_t stream);
cudaError_t strided_load(void);

/* limits.cu: the probes that measure the memory; no code in common with the kernels they are the limit of. What is read
 * is all zero, which leaves *sink as it is; a byte that is not is seen there. */
cudaError_t limits_read_launch(const void *memory, size_t bytes, unsigned *sink, cudaStream_t stream);
cudaError_t limits_write_launch(void *memory, size_t bytes, unsigned value, cudaStream_t stream);

/* Copies the first half of the bytes to the second. */
cudaError_t limits_copy_launch(void *memory, size_t bytes, cudaStream_t stream);

/* Reading and writing so many times in one launch, past the L1. */
cudaError_t limits_read_again_launch(const void *memory, size_t bytes, unsigned times, unsigned *sink,
                                     cudaStream_t stream);
cudaError_t limits_write_again_launch(void *memory, size_t bytes, unsigned times, cudaStream_t stream);

/* limits_latency.cu. A ring of `links` pointers, `distance` bytes apart, each to the next; one thread that follows it
 * for so many steps, through the L1 or past it, and leaves the last link in *sink; a block of LIMITS_STREAM_THREADS
 * that goes through a and b side by side, a word a thread and round, in rounds of which each waits for the one before,
 * within rounds * (LIMITS_STREAM_THREADS + 1) words; LIMITS_ATOMIC_THREADS threads that add 0 to the float *sink, so
 * often each. */
enum { LIMITS_ATOMIC_THREADS = 256, LIMITS_STREAM_THREADS = 256 };
cudaError_t limits_chain_launch(void *memory, unsigned links, unsigned distance, cudaStream_t stream);
cudaError_t limits_chase_launch(const void *start, unsigned steps, int past_l1, void *sink, cudaStream_t stream);
cudaError_t limits_stream_launch(const void *a, const void *b, unsigned rounds, void *sink, cudaStream_t into);
cudaError_t limits_atomic_launch(void *sink, unsigned times, cudaStream_t stream);

/* limits_launch.cu: a kernel that does nothing, with so many bytes of shared memory a block. */
cudaError_t limits_empty_launch(unsigned blocks, unsigned threads, unsigned shared, cudaStream_t stream);

/* delay.cu: keeps the stream busy for that many clock cycles of the GPU. */
cudaError_t delay_launch(unsigned cycles, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
