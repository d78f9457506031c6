/* The C interface of the kernels. Every pointer is memory that the current device can access; functions check no
 * argument and never wait; n counts components (csrc/base/dtype.h). */
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
    unsigned *fp_flags; /* NULL, or a word into which the kernel ORs FP_OVERFLOW and FP_INVALID (csrc/base/fpflags.h),
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
                     * that lie inside the operand */
};

/* add.cu: `tuned`. Returns cudaErrorInvalidConfiguration if a block is not whole warps or the grid is too large. */
cudaError_t add_launch(const struct add_call *call);

/* Loads every kernel of add.cu into the current device's context, so that CUDA loads none lazily inside a capture. */
cudaError_t add_load(void);

/* strided.cu: any layout, any dtypes. a, b and c point to first elements, at any alignment; ignored for scalars. c
 * overlaps an input only if each element of c replaces the element that it is computed from; c does not overlap itself.
 * Sums of 2^31 elements or more are queued in pieces. */
cudaError_t strided_launch(const struct strided *add, const void *a, const void *b, void *c, cudaStream_t stream);

/* strided_launch in pieces of `most` elements at most, 1 to 2^31 - 1, so that tests can cut small sums. */
cudaError_t strided_launch_pieces(const struct strided *add, const void *a, const void *b, void *c, size_t most,
                                  cudaStream_t stream);
cudaError_t strided_load(void);

/* lab/limits/bandwidth.cu: probes that measure the memory's bandwidth, and share no code with the kernels that they are
 * compared with. The memory read is all zeros, which leaves *sink unchanged; any other byte changes it. */
cudaError_t limits_read_launch(const void *memory, size_t bytes, unsigned *sink, cudaStream_t stream);
cudaError_t limits_write_launch(void *memory, size_t bytes, unsigned value, cudaStream_t stream);

/* Copies the first half of the bytes to the second. */
cudaError_t limits_copy_launch(void *memory, size_t bytes, cudaStream_t stream);

/* Reads or writes the memory `times` times in one launch, past the L1. */
cudaError_t limits_read_again_launch(const void *memory, size_t bytes, unsigned times, unsigned *sink,
                                     cudaStream_t stream);
cudaError_t limits_write_again_launch(void *memory, size_t bytes, unsigned times, cudaStream_t stream);

/* lab/limits/latency.cu. chain: writes a ring of `links` pointers, `distance` bytes apart, each to the next. chase: one
 * thread follows the ring for `steps` steps, through the L1 or past it, and leaves the last pointer in *sink. stream: a
 * block of LIMITS_STREAM_THREADS reads a and b, one word a thread and round; each round waits for the one before; it
 * reads within the first rounds * (LIMITS_STREAM_THREADS + 1) words of each. atomic: LIMITS_ATOMIC_THREADS threads add
 * 0 to the float *sink, `times` times each. */
enum { LIMITS_ATOMIC_THREADS = 256, LIMITS_STREAM_THREADS = 256 };
cudaError_t limits_chain_launch(void *memory, unsigned links, unsigned distance, cudaStream_t stream);
cudaError_t limits_chase_launch(const void *start, unsigned steps, int past_l1, void *sink, cudaStream_t stream);
cudaError_t limits_stream_launch(const void *a, const void *b, unsigned rounds, void *sink, cudaStream_t into);
cudaError_t limits_atomic_launch(void *sink, unsigned times, cudaStream_t stream);

/* lab/limits/launch.cu: a kernel that does nothing, with `shared` bytes of shared memory a block. */
cudaError_t limits_empty_launch(unsigned blocks, unsigned threads, unsigned shared, cudaStream_t stream);

/* lab/delay.cu: keeps the stream busy for that many clock cycles of the GPU. */
cudaError_t delay_launch(unsigned cycles, cudaStream_t stream);

/* lab/hold.cu: keeps every multiprocessor full until the host sets `open`, or for so many clock cycles of the GPU:
 * `expired` is then 1. Each of hold_blocks' blocks sets its place of `here` when it runs. All in page-locked memory. */
struct hold_flags {
    unsigned open, expired;
};
cudaError_t hold_blocks(int device, unsigned *blocks);
cudaError_t hold_launch(struct hold_flags *flags, unsigned *here, unsigned blocks, unsigned cycles,
                        cudaStream_t stream);

/* lab/compare.cu: counts, in words of 1, 2, 4 or 8 bytes, where memory is not what it should be, bit for bit. `first`
 * is ULLONG_MAX where nothing is wrong; the caller sets all counts before. Of the wrong words `unwritten` are still the
 * poison, `before` and `last` those that stand in these arrays. */
struct comparison {
    unsigned long long wrong, first, unwritten, before, last;
};
struct compare_call {
    const void *found, *right; /* right: NULL: every byte should be the poison */
    const void *before, *last; /* or NULL */
    size_t bytes;
    unsigned word;
    unsigned char poison;
    struct comparison *counts; /* in device memory */
};
cudaError_t compare_launch(const struct compare_call *call, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
