/* What a launch over a table of jobs costs: the host writes the jobs, the driver copies them, and each block of the
 * launch looks one up. It is timed once among other work, as a batch is called: the driver's code and memory have left
 * the caches. */
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "cuda/lab/launches.h"
#include "gpu/device.h"
#include "lab/limits/probe.h"

enum { JOBS = 1024, THREADS = 32, ROUNDS_MAX = 64 };

/* The jobs' components in all; each job divides it by their number, as a caller who cuts an array does. */
static volatile uint64_t components = 1000003;

/* Host seconds for a table of `count` jobs, its allocation included, on a stream that has had none before. */
static int
table_pass(const struct probe *probe, cudaStream_t stream, const struct device_scope *scope, unsigned count,
           double *seconds, struct status *status)
{
    void *device = NULL;
    int result = -1;
    const double begin = now_seconds();
    struct limits_job *const jobs = malloc(count * sizeof *jobs);
    if (!jobs)
        return status_set(status, STATUS_MEMORY, "there is no memory for a table of %u jobs", count);
    uint64_t at = 0;
    for (unsigned i = 0; i < count; i++) {
        const uint64_t length = components / count + (i < components % count);
        jobs[i] = (struct limits_job){.from = 2 * at, .to = 4 * at, .count = length};
        at += length;
    }
    if (pool_allocate(scope, stream, count * sizeof *jobs, &device, status) < 0)
        goto done;
    cudaError_t error = cudaMemcpyAsync(device, jobs, count * sizeof *jobs, cudaMemcpyHostToDevice, stream);
    if (error == cudaSuccess)
        error = limits_table_launch(device, count, THREADS, probe->sink, stream);
    const cudaError_t waited = stream_wait(stream);
    *seconds = now_seconds() - begin;
    if (error == cudaSuccess)
        error = waited;
    result = error == cudaSuccess ? 0 : device_status(status, error, "cudaMemcpyAsync");
done:
    pool_release(stream, device);
    free(jobs);
    return result;
}

static int
table_on_new_stream(const struct probe *probe, const struct device_scope *scope, unsigned count, double *seconds,
                    struct status *status)
{
    cudaStream_t stream;
    const cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaStreamCreateWithFlags");
    const int result = table_pass(probe, stream, scope, count, seconds, status);
    device_ignore(cudaStreamDestroy(stream));
    return result;
}

int
limits_table(const struct probe *probe, const struct device_scope *scope, int rounds, double *table, double *job,
             struct status *status)
{
    double one[ROUNDS_MAX], many[ROUNDS_MAX];
    if (rounds > ROUNDS_MAX)
        rounds = ROUNDS_MAX;
    for (int round = -1; round < rounds; round++) {
        const int kept = round < 0 ? 0 : round;
        probe_disturb();
        if (table_on_new_stream(probe, scope, 1, &one[kept], status) < 0)
            return -1;
        probe_disturb();
        if (table_on_new_stream(probe, scope, JOBS, &many[kept], status) < 0)
            return -1;
    }
    *table = probe_median(one, rounds);
    const double further = probe_median(many, rounds) - *table;
    *job = further > 0 ? further / (JOBS - 1) : 0;
    return 0;
}
