/* The C interface of the probes that are more than one kernel on the device's own memory; cuda/kernels.h says what all
 * of these functions have in common. */
#ifndef VECADD_CUDA_LAB_LIMITS_PROBE_LAUNCHES_H
#define VECADD_CUDA_LAB_LIMITS_PROBE_LAUNCHES_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#include "lab/base/pattern.h"

#ifdef __cplusplus
extern "C" {
#endif

/* programmatic.cu: a programmatic launch of a kernel that idles for `cycles` clock cycles. Each block first waits for
 * the kernel ahead; with `triggers` it then lets the kernel behind begin. From compute capability 9.0 on. */
cudaError_t limits_programmatic_launch(unsigned blocks, unsigned threads, int triggers, unsigned cycles,
                                       cudaStream_t stream);

/* merge.cu: reads the first two thirds of the bytes and writes the last third, a word a thread. */
cudaError_t limits_merge_launch(void *memory, size_t bytes, cudaStream_t stream);

/* table.cu: one block for each job of a table in device memory. No job is all ones, so that *sink is not written. */
struct limits_job {
    uint64_t from, to, count, flags;
};
cudaError_t limits_table_launch(const struct limits_job *jobs, unsigned count, unsigned threads, uint64_t *sink,
                                cudaStream_t stream);

/* loaded.cu: each thread reads 16 bytes, `loads` (1, 2 or 4) times at once, in rounds that wait for each other. All
 * threads together read the first 16 * rounds * loads * blocks * threads bytes of the memory, which are zeros: *sink
 * stays as it is. */
enum { LIMITS_LOADED_THREADS = 1024 }; /* a block, at most */
struct limits_load {
    unsigned blocks, threads, loads, rounds;
};
cudaError_t limits_loaded_launch(const void *memory, const struct limits_load *load, uint64_t *sink,
                                 cudaStream_t stream);

/* pattern.cu: writes words by a pattern; adds to *found, in device memory, the words that are not the pattern's. */
cudaError_t limits_pattern_write_launch(uint64_t *memory, size_t words, const struct pattern *pattern,
                                        cudaStream_t stream);
cudaError_t limits_pattern_check_launch(const uint64_t *memory, size_t words, const struct pattern *pattern,
                                        struct pattern_found *found, cudaStream_t stream);

/* pattern.cu: copies a multiple of 16 bytes. Either place may be another GPU's that this one has peer access to. */
cudaError_t limits_copy_words_launch(const void *from, void *to, size_t bytes, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
