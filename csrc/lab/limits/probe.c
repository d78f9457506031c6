#include "lab/limits/probe.h"

#include <string.h>

#include "cuda/lab/launches.h"
#include "gpu/device.h"

int
probe_open(struct probe *probe, const struct device_scope *scope, size_t bytes, struct status *status)
{
    cudaError_t error = cudaStreamCreateWithFlags(&probe->stream, cudaStreamNonBlocking);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaStreamCreateWithFlags");
    error = cudaEventCreate(&probe->begin);
    if (error == cudaSuccess)
        error = cudaEventCreate(&probe->end);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaEventCreate");
    if (bytes && pool_allocate(scope, probe->stream, bytes, &probe->memory, status) < 0)
        return -1;
    return pool_allocate(scope, probe->stream, sizeof(uint64_t), &probe->sink, status);
}

/* Memory goes back to the pool, not to the driver: unmapping slows the device for a while. */
void
probe_close(const struct probe *probe)
{
    pool_release(probe->stream, probe->memory);
    pool_release(probe->stream, probe->sink);
    if (probe->begin)
        device_ignore(cudaEventDestroy(probe->begin));
    if (probe->end)
        device_ignore(cudaEventDestroy(probe->end));
    if (probe->stream)
        device_ignore(cudaStreamDestroy(probe->stream));
}

static cudaError_t
queue(const struct probe *probe, unsigned head_start, probe_launch *launch, const void *argument)
{
    cudaError_t error = head_start ? delay_launch(head_start, probe->stream) : cudaSuccess;
    if (error == cudaSuccess)
        error = cudaEventRecord(probe->begin, probe->stream);
    if (error == cudaSuccess)
        error = launch(probe, argument);
    return error == cudaSuccess ? cudaEventRecord(probe->end, probe->stream) : error;
}

int
probe_time(const struct probe *probe, unsigned head_start, probe_launch *launch, const void *argument, const char *what,
           double *seconds, struct status *status)
{
    float milliseconds = 0;
    cudaError_t error = queue(probe, head_start, launch, argument);
    cudaError_t waited = stream_wait(probe->stream);
    if (error == cudaSuccess)
        error = waited;
    if (error == cudaSuccess)
        error = cudaEventElapsedTime(&milliseconds, probe->begin, probe->end);
    if (error != cudaSuccess)
        return device_status(status, error, what);
    *seconds = milliseconds / 1e3;
    return 0;
}

void
probe_disturb(void)
{
    static char others[4 << 20]; /* twice the largest L2 of a core */
    static unsigned char value;
    memset(others, ++value, sizeof others);
    __asm__ volatile("" : : "r"(others) : "memory");
}
