#include <cuda_runtime_api.h>

#include "cuda/lab/launches.h"
#include "gpu/device.h"
#include "lab/base/probes.h"
#include "lab/limits/probe.h"

enum { L2_PASSES = 64 }; /* 1 GB of traffic on an H200, 0.2 ms: the launch's 3 us are 2 % of it */

enum way { WRITE, READ, COPY }; /* writing first: reads and copies expect its zeros */

struct pass {
    enum way way;
    size_t bytes;
    unsigned times;
};

static cudaError_t
launch_pass(const struct probe *probe, const void *argument)
{
    const struct pass *pass = argument;
    if (pass->way == COPY)
        return limits_copy_launch(probe->memory, pass->bytes, probe->stream);
    if (pass->times == 1)
        return pass->way == WRITE ? limits_write_launch(probe->memory, pass->bytes, 0, probe->stream)
                                  : limits_read_launch(probe->memory, pass->bytes, probe->sink, probe->stream);
    return pass->way == WRITE
               ? limits_write_again_launch(probe->memory, pass->bytes, pass->times, probe->stream)
               : limits_read_again_launch(probe->memory, pass->bytes, pass->times, probe->sink, probe->stream);
}

/* The best of all rounds but the first, which warms up. */
static int
measure(int device, size_t bytes, unsigned times, int ways, int rounds, struct memory_rates *rates,
        struct status *status)
{
    struct device_scope scope;
    if (device_enter_relaxed(&scope, device, status) < 0)
        return -1;

    int result = -1;
    struct probe probe = {0};
    double *const best[] = {[WRITE] = &rates->write, [READ] = &rates->read, [COPY] = &rates->copy};
    *rates = (struct memory_rates){0};
    if (probe_open(&probe, &scope, bytes, status) < 0)
        goto done;
    for (int round = -1; round < rounds; round++)
        for (int way = 0; way < ways; way++) {
            const struct pass pass = {(enum way)way, bytes, times};
            double seconds = 0;
            if (probe_time(&probe, 0, launch_pass, &pass, "cudaLaunchKernel", &seconds, status) < 0)
                goto done;
            const double rate = seconds > 0 ? (double)bytes * times / seconds : 0;
            if (round >= 0 && rate > *best[way])
                *best[way] = rate;
        }
    result = 0;
done:
    probe_close(&probe);
    device_leave(&scope);
    return result;
}

int
limits_device(int device, size_t bytes, int rounds, struct memory_rates *rates, struct status *status)
{
    return measure(device, bytes, 1, COPY + 1, rounds, rates, status);
}

int
limits_l2(int device, size_t bytes, int rounds, struct memory_rates *rates, struct status *status)
{
    return measure(device, bytes, L2_PASSES, READ + 1, rounds, rates, status);
}
