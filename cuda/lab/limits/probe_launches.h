/* The probes that are more than one kernel on the device's own memory, as plain C sees them; see kernels.h for what
 * all of these have in common. */
#ifndef VECADD_CUDA_LAB_LIMITS_PROBE_LAUNCHES_H
#define VECADD_CUDA_LAB_LIMITS_PROBE_LAUNCHES_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* limits_programmatic.cu: a kernel that does nothing for so many clock cycles, by a programmatic launch, each block of
 * which first waits for the kernel ahead; with `triggers` it then lets the kernel behind begin. From compute capability
 * 9.0 on. */
cudaError_t limits_programmatic_launch(unsigned blocks, unsigned threads, int triggers, unsigned cycles,
                                       cudaStream_t stream);

/* limits_merge.cu: reads the first two thirds of the bytes and writes the last, a word a thread. */
cudaError_t limits_merge_launch(void *memory, size_t bytes, cudaStream_t stream);

/* limits_table.cu: a block a job of a table in device memory, none of which is all ones: *sink stays as it is. */
struct limits_job {
    uint64_t from, to, count, flags;
};
cudaError_t limits_table_launch(const struct limits_job *jobs, unsigned count, unsigned threads, uint64_t *sink,
                                cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
