#include <cuda_runtime_api.h>

#include "cuda/kernels.h"
#include "gpu/device.h"
#include "lab/base/probes.h"
#include "lab/limits/probe.h"

enum { UP = 1, DOWN = 2 };
enum { COSTS = 32, STREAMS = 4, SMALL = 4 /* bytes: 0.1 ns of a link's time */ };

struct link_probe {
    cudaStream_t up, down;
    cudaEvent_t begin, fork, join, end; /* begin and end on `up`; fork and join lead `down` off it and back */
    void *host[2], *device[2];          /* [0] goes up, [1] comes down */
};

static int
link_open(struct link_probe *probe, const struct device_scope *scope, size_t bytes, struct status *status)
{
    cudaError_t error = cudaStreamCreateWithFlags(&probe->up, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&probe->down, cudaStreamNonBlocking);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaStreamCreateWithFlags");
    cudaEvent_t *const events[] = {&probe->begin, &probe->fork, &probe->join, &probe->end};
    for (int i = 0; i < 4; i++) {
        error = cudaEventCreate(events[i]);
        if (error != cudaSuccess)
            return device_status(status, error, "cudaEventCreate");
    }
    for (int i = 0; i < 2; i++) {
        error = cudaHostAlloc(&probe->host[i], bytes, cudaHostAllocDefault);
        if (error != cudaSuccess)
            return device_status(status, error, "cudaHostAlloc");
        if (pool_allocate(scope, probe->up, bytes, &probe->device[i], status) < 0)
            return -1;
    }
    error = cudaMemsetAsync(probe->device[1], 0, bytes, probe->up);
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaMemsetAsync");
}

static void
link_close(const struct link_probe *probe)
{
    const cudaEvent_t events[] = {probe->begin, probe->fork, probe->join, probe->end};
    for (int i = 0; i < 2; i++) {
        pool_release(probe->up, probe->device[i]);
        if (probe->host[i])
            device_ignore(cudaFreeHost(probe->host[i]));
    }
    for (int i = 0; i < 4; i++)
        if (events[i])
            device_ignore(cudaEventDestroy(events[i]));
    if (probe->up)
        device_ignore(cudaStreamDestroy(probe->up));
    if (probe->down)
        device_ignore(cudaStreamDestroy(probe->down));
}

static cudaError_t
link_queue(const struct link_probe *probe, int ways, size_t bytes)
{
    cudaError_t error = cudaEventRecord(probe->begin, probe->up);
    if (error == cudaSuccess)
        error = cudaEventRecord(probe->fork, probe->up);
    if (error == cudaSuccess)
        error = cudaStreamWaitEvent(probe->down, probe->fork, cudaEventWaitDefault);
    if (error == cudaSuccess && ways & UP)
        error = cudaMemcpyAsync(probe->device[0], probe->host[0], bytes, cudaMemcpyHostToDevice, probe->up);
    if (error == cudaSuccess && ways & DOWN)
        error = cudaMemcpyAsync(probe->host[1], probe->device[1], bytes, cudaMemcpyDeviceToHost, probe->down);
    if (error == cudaSuccess)
        error = cudaEventRecord(probe->join, probe->down);
    if (error == cudaSuccess)
        error = cudaStreamWaitEvent(probe->up, probe->join, cudaEventWaitDefault);
    return error == cudaSuccess ? cudaEventRecord(probe->end, probe->up) : error;
}

/* Seconds in which `bytes` go each of the ways. */
static int
link_pass(const struct link_probe *probe, int ways, size_t bytes, double *seconds, struct status *status)
{
    float milliseconds;
    cudaError_t error = link_queue(probe, ways, bytes);
    cudaError_t waited = stream_wait(probe->down);
    if (error == cudaSuccess)
        error = waited;
    waited = stream_wait(probe->up);
    if (error == cudaSuccess)
        error = waited;
    if (error == cudaSuccess)
        error = cudaEventElapsedTime(&milliseconds, probe->begin, probe->end);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaMemcpyAsync");
    *seconds = milliseconds / 1e3;
    return 0;
}

/* Both ways in turn, as a sum's copies are. */
static int
waited_copies(const struct link_probe *probe, double *seconds, struct status *status)
{
    cudaError_t error = cudaSuccess;
    const double begin = now_seconds();
    for (int i = 0; i < COSTS && error == cudaSuccess; i++)
        error = i % 2 ? cudaMemcpy(probe->host[1], probe->device[1], SMALL, cudaMemcpyDeviceToHost)
                      : cudaMemcpy(probe->device[0], probe->host[0], SMALL, cudaMemcpyHostToDevice);
    *seconds = (now_seconds() - begin) / COSTS;
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaMemcpy");
}

static int
queued_copies(const struct link_probe *probe, double *seconds, struct status *status)
{
    cudaError_t error = cudaSuccess;
    const double begin = now_seconds();
    for (int i = 0; i < COSTS && error == cudaSuccess; i++)
        error = cudaMemcpyAsync(probe->device[0], probe->host[0], SMALL, cudaMemcpyHostToDevice, probe->up);
    *seconds = (now_seconds() - begin) / COSTS;
    const cudaError_t waited = stream_wait(probe->up);
    if (error == cudaSuccess)
        error = waited;
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaMemcpyAsync");
}

/* A copy up, a kernel and a copy down, and their end. */
static cudaError_t
use_stream(const struct link_probe *probe, cudaStream_t stream)
{
    cudaError_t error = cudaMemcpyAsync(probe->device[0], probe->host[0], SMALL, cudaMemcpyHostToDevice, stream);
    if (error == cudaSuccess)
        error = limits_empty_launch(1, 1, 0, stream);
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(probe->host[1], probe->device[1], SMALL, cudaMemcpyDeviceToHost, stream);
    const cudaError_t waited = stream_wait(stream);
    return error == cudaSuccess ? waited : error;
}

/* Several at once, that have carried something: one that has not is destroyed in a quarter of the time. What they carry
 * is outside of the clock. */
static int
made_streams(const struct link_probe *probe, double *seconds, struct status *status)
{
    cudaStream_t streams[STREAMS];
    cudaError_t error = cudaSuccess;
    *seconds = 0;
    for (int i = 0; i < COSTS / STREAMS && error == cudaSuccess; i++) {
        int made = 0;
        probe_disturb();
        double begin = now_seconds();
        while (made < STREAMS && (error = cudaStreamCreate(&streams[made])) == cudaSuccess)
            made++;
        *seconds += now_seconds() - begin;
        for (int k = 0; k < made && error == cudaSuccess; k++)
            error = use_stream(probe, streams[k]);
        begin = now_seconds();
        for (int k = 0; k < made; k++)
            device_ignore(cudaStreamDestroy(streams[k]));
        *seconds += now_seconds() - begin;
    }
    *seconds /= COSTS;
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaStreamCreate");
}

/* Each twice: the first time does not count. The device's memory is there once its stream says so. */
static int
measure_costs(const struct link_probe *probe, struct link_limits *limits, struct status *status)
{
    const cudaError_t error = stream_wait(probe->up);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaStreamSynchronize");
    for (int round = 0; round < 2; round++)
        if (waited_copies(probe, &limits->copy, status) < 0 || queued_copies(probe, &limits->queued_copy, status) < 0 ||
            made_streams(probe, &limits->stream, status) < 0)
            return -1;
    return 0;
}

int
limits_link(int device, size_t bytes, int rounds, struct link_limits *limits, struct status *status)
{
    struct device_scope scope;
    if (device_enter_relaxed(&scope, device, status) < 0)
        return -1;

    const struct {
        int ways;
        double bytes;
        double *rate;
    } cases[] = {{UP, (double)bytes, &limits->to_device},
                 {DOWN, (double)bytes, &limits->to_host},
                 {UP | DOWN, 2 * (double)bytes, &limits->both}};
    int result = -1;
    struct link_probe probe = {0};
    *limits = (struct link_limits){0};
    if (link_open(&probe, &scope, bytes, status) < 0 || measure_costs(&probe, limits, status) < 0)
        goto done;
    for (int round = -1; round < rounds; round++)
        for (int i = 0; i < 3; i++) {
            double seconds = 0;
            if (link_pass(&probe, cases[i].ways, bytes, &seconds, status) < 0)
                goto done;
            if (round >= 0 && seconds > 0 && cases[i].bytes / seconds > *cases[i].rate)
                *cases[i].rate = cases[i].bytes / seconds;
        }
    result = 0;
done:
    link_close(&probe);
    device_leave(&scope);
    return result;
}
