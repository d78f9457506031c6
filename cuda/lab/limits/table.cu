/* A launch that works through a table of jobs which the host has just written, a block a job, and does nothing with
 * them. */
#include "cuda/lab/limits/probe_launches.h"
#include "cuda/launch.cuh"

__global__ static void
look_up(const struct limits_job *jobs, uint64_t *sink)
{
    const struct limits_job job = jobs[blockIdx.x];
    /* No job is of all ones, but the compiler has to believe that one might be. */
    if ((job.from & job.to & job.count) == UINT64_MAX)
        *sink = job.flags;
}

cudaError_t
limits_table_launch(const struct limits_job *jobs, unsigned count, unsigned threads, uint64_t *sink,
                    cudaStream_t stream)
{
    return launch_grid(look_up, dim3(count), dim3(threads), 0, stream, jobs, sink);
}
