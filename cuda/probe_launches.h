/* The probes of launches that are more than one kernel after the other, as plain C sees them; see kernels.h for what
 * all of these have in common. */
#ifndef VECADD_PROBE_LAUNCHES_H
#define VECADD_PROBE_LAUNCHES_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* limits_programmatic.cu: an empty kernel by a programmatic launch, each block of which waits for the kernel ahead;
 * with `triggers` it then lets the kernel behind begin. From compute capability 9.0 on. */
cudaError_t limits_programmatic_launch(unsigned blocks, unsigned threads, int triggers, cudaStream_t stream);

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
