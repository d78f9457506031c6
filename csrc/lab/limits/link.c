#include <cuda_runtime_api.h>

#include "gpu/device.h"
#include "lab/base/probes.h"
#include "lab/limits/probe.h"

enum { UP = 1, DOWN = 2 };

struct link_probe {
    cudaStream_t up, down;
    cudaEvent_t begin, fork, join, end; /* begin and end on `up`; `down` branches off at fork and rejoins at join */
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

/* Seconds in which `bytes` cross the link in each direction of `ways`. */
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
    if (link_open(&probe, &scope, bytes, status) < 0)
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
