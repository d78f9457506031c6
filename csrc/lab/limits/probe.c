#include "lab/limits/probe.h"

#include "cuda/lab/launches.h"
#include "gpu/device.h"

int
probe_enter(struct probe *probe, struct status *status)
{
    const int result = device_enter_relaxed(&probe->scope, probe->scope.device, status);
    probe->entered = result == 0;
    return result;
}

void
probe_leave(struct probe *probe)
{
    if (probe->entered)
        device_leave(&probe->scope);
    probe->entered = false;
}

int
probe_make_events(struct probe *probe, struct status *status)
{
    cudaError_t error = cudaEventCreate(&probe->begin);
    if (error == cudaSuccess)
        error = cudaEventCreate(&probe->end);
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaEventCreate");
}

void
probe_destroy_events(const struct probe *probe)
{
    if (probe->begin)
        device_ignore(cudaEventDestroy(probe->begin));
    if (probe->end)
        device_ignore(cudaEventDestroy(probe->end));
}

int
probe_open(struct probe *probe, int device, size_t bytes, struct status *status)
{
    *probe = (struct probe){.scope.device = device, .bytes = bytes};
    if (probe_enter(probe, status) < 0)
        return -1;
    if (CUDA_CALL(status, cudaStreamCreateWithFlags, &probe->stream, cudaStreamNonBlocking) < 0)
        return -1;
    if (probe_make_events(probe, status) < 0)
        return -1;
    if (bytes && pool_allocate(&probe->scope, probe->stream, bytes, &probe->memory, status) < 0)
        return -1;
    return pool_allocate(&probe->scope, probe->stream, sizeof(uint64_t), &probe->sink, status);
}

/* Memory goes back to the pool, not to the driver: unmapping slows the device for a while. */
void
probe_close(struct probe *probe)
{
    if (!probe->entered) {
        if (!probe->stream || !device_enter_to_release(&probe->scope, probe->scope.device))
            return;
        probe->entered = true;
    }
    pool_release(probe->stream, probe->memory);
    pool_release(probe->stream, probe->sink);
    probe_destroy_events(probe);
    if (probe->stream)
        device_ignore(cudaStreamDestroy(probe->stream));
    probe_leave(probe);
}

static cudaError_t
queue(const struct probe *probe, const struct probe_work *work)
{
    cudaError_t error = work->before ? work->before(probe, work->argument) : cudaSuccess;
    if (error == cudaSuccess && work->head_start)
        error = delay_launch(work->head_start, probe->stream);
    if (error == cudaSuccess)
        error = cudaEventRecord(probe->begin, probe->stream);
    if (error == cudaSuccess)
        error = work->launch(probe, work->argument);
    return error == cudaSuccess ? cudaEventRecord(probe->end, probe->stream) : error;
}

int
probe_time(const struct probe *probe, const struct probe_work *work, double *seconds, struct status *status)
{
    float milliseconds = 0;
    cudaError_t error = queue(probe, work);
    cudaError_t waited = stream_wait(probe->stream);
    if (error == cudaSuccess)
        error = waited;
    if (error == cudaSuccess)
        error = cudaEventElapsedTime(&milliseconds, probe->begin, probe->end);
    if (error != cudaSuccess)
        return device_status(status, error, work->what ? work->what : "cudaLaunchKernel");
    *seconds = milliseconds / 1e3;
    return 0;
}

int
probe_best(const struct probe *probe, const struct probe_work *work, int rounds, double *seconds, struct status *status)
{
    *seconds = 0;
    for (int round = -1; round < rounds; round++) {
        double found = 0;
        if (probe_time(probe, work, &found, status) < 0)
            return -1;
        if (round >= 0 && (*seconds == 0 || found < *seconds))
            *seconds = found;
    }
    return 0;
}

int
probe_median(const struct probe *probe, const struct probe_work *work, int rounds, double *seconds,
             struct status *status)
{
    double each[ROUNDS_MAX];
    rounds = fewer(rounds, ROUNDS_MAX);
    for (int round = -1; round < rounds; round++)
        if (probe_time(probe, work, &each[round < 0 ? 0 : round], status) < 0)
            return -1;
    *seconds = median(each, rounds);
    return 0;
}
