/* A launch over a table of jobs that the host has just written: each block reads one job and does nothing with it. */
#include "cuda/lab/limits/probe_launches.h"
#include "cuda/launch.cuh"

__global__ static void
look_up(const struct limits_job *jobs, uint64_t *sink)
{
    const struct limits_job job = jobs[blockIdx.x];
    /* No job is all ones, but the compiler cannot know that and keeps the reads. */
    if ((job.from & job.to & job.count) == UINT64_MAX)
        *sink = job.flags;
}

cudaError_t
limits_table_launch(const struct limits_job *jobs, unsigned count, unsigned threads, uint64_t *sink,
                    cudaStream_t stream)
{
    return launch_grid(look_up, dim3(count), dim3(threads), 0, stream, jobs, sink);
}
