#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "device.h"
#include "kernels.h"
#include "probe.h"
#include "probes.h"

enum { L2_PASSES = 64 }; /* 1 GB of traffic on an H200, 0.2 ms: the launch's 3 us are 2 % of it */

struct pass {
    bool write;
    size_t bytes;
    unsigned times;
};

static cudaError_t
launch_pass(const struct probe *probe, const void *argument)
{
    const struct pass *pass = argument;
    if (pass->times == 1)
        return pass->write ? limits_write_launch(probe->memory, pass->bytes, 0, probe->stream)
                           : limits_read_launch(probe->memory, pass->bytes, probe->sink, probe->stream);
    return pass->write ? limits_write_again_launch(probe->memory, pass->bytes, pass->times, probe->stream)
                       : limits_read_again_launch(probe->memory, pass->bytes, pass->times, probe->sink, probe->stream);
}

/* Rates of writing and of reading, best of the rounds after a first one that does not count. Writing first: the reads
 * find the zeros that they expect. */
static int
measure(int device, size_t bytes, unsigned times, int rounds, double *read, double *write, struct status *status)
{
    struct device_scope scope;
    if (device_enter(&scope, device, status) < 0)
        return -1;

    int result = -1;
    struct probe probe = {0};
    const struct pass passes[] = {{true, bytes, times}, {false, bytes, times}};
    double *const rates[] = {write, read};
    *read = *write = 0;
    if (probe_open(&probe, &scope, bytes, status) < 0)
        goto done;
    for (int round = -1; round < rounds; round++)
        for (int way = 0; way < 2; way++) {
            double seconds = 0;
            if (probe_time(&probe, 0, launch_pass, &passes[way], "cudaLaunchKernel", &seconds, status) < 0)
                goto done;
            const double rate = seconds > 0 ? (double)bytes * times / seconds : 0;
            if (round >= 0 && rate > *rates[way])
                *rates[way] = rate;
        }
    result = 0;
done:
    probe_close(&probe);
    device_leave(&scope);
    return result;
}

int
limits_device(int device, size_t bytes, int rounds, double *read, double *write, struct status *status)
{
    return measure(device, bytes, 1, rounds, read, write, status);
}

int
limits_l2(int device, size_t bytes, int rounds, double *read, double *write, struct status *status)
{
    return measure(device, bytes, L2_PASSES, rounds, read, write, status);
}
