#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "device.h"
#include "device_state.h"
#include "kernels.h"
#include "probes.h"

struct probe {
    cudaStream_t stream;
    cudaEvent_t begin, end;
    void *memory;
    void *sink; /* one word: keeps the reads from being optimised away */
};

static int
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
    if (pool_allocate(scope, probe->stream, bytes, &probe->memory, status) < 0)
        return -1;
    return pool_allocate(scope, probe->stream, sizeof(unsigned), &probe->sink, status);
}

/* Into the pool, not back to the driver: memory that is unmapped slows the device for a while. */
static void
probe_close(const struct probe *probe)
{
    pool_release(probe->stream, probe->memory);
    pool_release(probe->stream, probe->sink);
    if (probe->begin)
        cudaEventDestroy(probe->begin);
    if (probe->end)
        cudaEventDestroy(probe->end);
    if (probe->stream)
        cudaStreamDestroy(probe->stream);
}

/* Seconds of one pass. */
static int
probe_pass(const struct probe *probe, bool write, size_t bytes, double *seconds, struct status *status)
{
    float milliseconds;
    cudaError_t error = cudaEventRecord(probe->begin, probe->stream);
    if (error == cudaSuccess)
        error = write ? limits_write_launch(probe->memory, bytes, 0, probe->stream)
                      : limits_read_launch(probe->memory, bytes, probe->sink, probe->stream);
    if (error == cudaSuccess)
        error = cudaEventRecord(probe->end, probe->stream);
    cudaError_t waited = stream_wait(probe->stream);
    if (error == cudaSuccess)
        error = waited;
    if (error == cudaSuccess)
        error = cudaEventElapsedTime(&milliseconds, probe->begin, probe->end);
    if (error != cudaSuccess)
        return device_status(status, error, write ? "limits_write_launch" : "limits_read_launch");
    *seconds = milliseconds / 1e3;
    return 0;
}

int
limits_device(int device, size_t bytes, int rounds, double *read, double *write, struct status *status)
{
    struct device_scope scope;
    if (device_enter(&scope, device, status) < 0)
        return -1;

    int result = -1;
    struct probe probe = {0};
    double *const rates[] = {write, read}; /* writing first: the reads find the zeros they expect */
    *read = *write = 0;
    if (probe_open(&probe, &scope, bytes, status) < 0)
        goto done;
    for (int round = -1; round < rounds; round++)
        for (int way = 0; way < 2; way++) {
            double seconds = 0;
            if (probe_pass(&probe, rates[way] == write, bytes, &seconds, status) < 0)
                goto done;
            if (round >= 0 && seconds > 0 && (double)bytes / seconds > *rates[way])
                *rates[way] = (double)bytes / seconds;
        }
    result = 0;
done:
    probe_close(&probe);
    device_leave(&scope);
    return result;
}
