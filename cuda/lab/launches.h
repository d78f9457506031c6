/* The C interface of the laboratory's kernels that are no rungs: probes and tools. cuda/kernels.h says what all of
 * these functions have in common. */
#ifndef VECADD_CUDA_LAB_LAUNCHES_H
#define VECADD_CUDA_LAB_LAUNCHES_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#include "lab/base/pattern.h"

#ifdef __cplusplus
extern "C" {
#endif

/* probes.cu: probes that measure the memory's bandwidth, and share no code with the kernels that they are
 * compared with. The memory read is all zeros, which leaves *sink unchanged; any other byte changes it. */
cudaError_t limits_read_launch(const void *memory, size_t bytes, unsigned *sink, cudaStream_t stream);
cudaError_t limits_write_launch(void *memory, size_t bytes, unsigned value, cudaStream_t stream);

/* Copies the first half of the bytes to the second. */
cudaError_t limits_copy_launch(void *memory, size_t bytes, cudaStream_t stream);

/* Reads or writes the memory `times` times in one launch, past the L1. */
cudaError_t limits_read_again_launch(const void *memory, size_t bytes, unsigned times, unsigned *sink,
                                     cudaStream_t stream);
cudaError_t limits_write_again_launch(void *memory, size_t bytes, unsigned times, cudaStream_t stream);

/* probes.cu. chain: writes a ring of `links` pointers, `distance` bytes apart, each to the next. chase: one
 * thread follows the ring for `steps` steps, through the L1 or past it, and leaves the last pointer in *sink. stream: a
 * block of LIMITS_STREAM_THREADS reads a and b, one word a thread and round; each round waits for the one before; it
 * reads within the first rounds * (LIMITS_STREAM_THREADS + 1) words of each. atomic: LIMITS_ATOMIC_THREADS threads add
 * 0 to the float *sink, `times` times each. */
enum { LIMITS_ATOMIC_THREADS = 256, LIMITS_STREAM_THREADS = 256 };
cudaError_t limits_chain_launch(void *memory, unsigned links, unsigned distance, cudaStream_t stream);
cudaError_t limits_chase_launch(const void *start, unsigned steps, int past_l1, void *sink, cudaStream_t stream);
cudaError_t limits_stream_launch(const void *a, const void *b, unsigned rounds, void *sink, cudaStream_t into);
cudaError_t limits_atomic_launch(void *sink, unsigned times, cudaStream_t stream);

/* probes.cu: a kernel that does nothing, with `shared` bytes of shared memory a block. */
cudaError_t limits_empty_launch(unsigned blocks, unsigned threads, unsigned shared, cudaStream_t stream);

/* tools.cu: keeps the stream busy for that many clock cycles of the GPU. */
cudaError_t delay_launch(unsigned cycles, cudaStream_t stream);

/* tools.cu: keeps every multiprocessor full until the host sets `open`, or for `cycles` clock cycles of the GPU:
 * `expired` is then 1. Each of blockade_size's blocks sets its entry of `here` when it runs. All in page-locked memory.
 */
struct blockade_flags {
    unsigned open, expired;
};
cudaError_t blockade_size(int device, unsigned *blocks);
cudaError_t blockade_launch(struct blockade_flags *flags, unsigned *here, unsigned blocks, unsigned cycles,
                            cudaStream_t stream);

/* tools.cu: counts, in words of 1, 2, 4 or 8 bytes, where memory is not what it should be, bit for bit. `first`
 * is ULLONG_MAX where nothing is wrong; the caller sets all counts before. Of the wrong words `unwritten` are still the
 * poison, `before` and `last` those that these arrays have there. */
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

/* probes.cu: a programmatic launch of a kernel that idles for `cycles` clock cycles. Each block first waits for
 * the kernel ahead; with `triggers` it then lets the next kernel begin. From compute capability 9.0 on. */
cudaError_t limits_programmatic_launch(unsigned blocks, unsigned threads, int triggers, unsigned cycles,
                                       cudaStream_t stream);

/* probes.cu: reads the first two thirds of the bytes and writes the last third, a word a thread. */
cudaError_t limits_merge_launch(void *memory, size_t bytes, cudaStream_t stream);

/* probes.cu: one block for each job of a table in device memory. No job is all ones, so that *sink is not written. */
struct limits_job {
    uint64_t from, to, count, flags;
};
cudaError_t limits_table_launch(const struct limits_job *jobs, unsigned count, unsigned threads, uint64_t *sink,
                                cudaStream_t stream);

/* probes.cu: each thread reads 16 bytes, `loads` (1, 2 or 4) times at once, in rounds that wait for each other. All
 * threads together read the first 16 * rounds * loads * blocks * threads bytes of the memory, which are zeros: *sink
 * stays as it is. */
enum { LIMITS_LOADED_THREADS = 1024 }; /* a block, at most */
struct limits_load {
    unsigned blocks, threads, loads, rounds;
};
cudaError_t limits_loaded_launch(const void *memory, const struct limits_load *load, uint64_t *sink,
                                 cudaStream_t stream);

/* probes.cu: writes words by a pattern; adds to *found, in device memory, the words that are not the pattern's. */
cudaError_t limits_pattern_write_launch(uint64_t *memory, size_t words, const struct pattern *pattern,
                                        cudaStream_t stream);
cudaError_t limits_pattern_check_launch(const uint64_t *memory, size_t words, const struct pattern *pattern,
                                        struct pattern_found *found, cudaStream_t stream);

/* probes.cu: copies a multiple of 16 bytes. Either place may be another GPU's that this one has peer access to. */
cudaError_t limits_copy_words_launch(const void *from, void *to, size_t bytes, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
