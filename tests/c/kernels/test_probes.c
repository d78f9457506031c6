/* probes.h on the CUDA-runtime double: figures are possible ones, and a call that fails leaks nothing. */
#include <cuda_runtime_api.h>

#include "double.h"
#include "failures.h"
#include "lab/base/probes.h"
#include "tests.h"

static union probe_found found;

static int
measure_rates(struct status *status)
{
    if (probe_rates(&(struct probe_request){1, 1 << 20, 1}, &found, status) < 0)
        return -1;
    const struct memory_rates *memory = &found.rates.memory, *l2 = &found.rates.l2;
    CHECK(memory->read > 0 && memory->write > 0 && memory->copy > 0 && l2->read > 0 && l2->write > 0);
    return 0;
}

static int
measure_latency(struct status *status)
{
    if (probe_latency(&(struct probe_request){1, 0, 1}, &found, status) < 0)
        return -1;
    const struct memory_latency latency = found.latency;
    CHECK(latency.l1 > 0 && latency.page > 0 && latency.l2 > 0 && latency.dram > 0 && latency.stream > 0 &&
          latency.atomic > 0);
    return 0;
}

static int
measure_loaded(struct status *status)
{
    if (probe_loaded(&(struct probe_request){1, 2 << 20, 1}, &found, status) < 0)
        return -1;
    const struct loaded_latency *points = found.loaded;
    for (int i = 0; i < LIMITS_LOADED; i++) {
        CHECK(points[i].seconds > 0 && points[i].rate > 0, "%d", i);
        CHECK(i == 0 || points[i].bytes > points[i - 1].bytes, "%d", i);
    }
    return 0;
}

static int
measure_launches(struct status *status)
{
    if (probe_launches(&(struct probe_request){1, 0, 1}, &found, status) < 0)
        return -1;
    const struct launch_seconds limits = found.launches;
    CHECK(limits.kernel > 0 && limits.block >= 0 && limits.turnaround >= 0 && limits.queued >= 0 && limits.node >= 0 &&
          limits.issued > 0);
    return 0;
}

TEST(no_probe_leaves_anything)
{
    static const struct {
        const char *name;
        int (*measure)(struct status *status);
    } probes[] = {
        {"rates", measure_rates},
        {"latency", measure_latency},
        {"loaded", measure_loaded},
        {"launches", measure_launches},
    };
    static const char *const calls[] = {
        "cudaStreamCreateWithFlags", "cudaEventCreate",       "cudaMallocFromPoolAsync", "cudaEventRecord",
        "cudaLaunchKernel",          "cudaStreamSynchronize", "cudaEventElapsedTime",
    };
    for (size_t p = 0; p < sizeof probes / sizeof *probes; p++)
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
            CHECK(fail_some_calls(calls[i], cudaErrorUnknown, probes[p].measure) > 0, "%s %s", probes[p].name,
                  calls[i]);
    static const char *const of_a_graph[] = {"cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiate",
                                             "cudaGraphUpload", "cudaGraphLaunch"};
    for (size_t i = 0; i < sizeof of_a_graph / sizeof *of_a_graph; i++)
        CHECK(fail_some_calls(of_a_graph[i], cudaErrorUnknown, measure_launches) > 0, "%s", of_a_graph[i]);
    CHECK(live_now().streams == 0 && live_now().device_blocks == 0);
}

static int
measure_link(struct status *status)
{
    if (probe_link(&(struct probe_request){1, 1 << 16, 1}, &found, status) < 0)
        return -1;
    CHECK(found.link.to_device > 0 && found.link.to_host > 0 && found.link.both > 0);
    return 0;
}

TEST(the_link_probe_leaves_nothing)
{
    static const char *const calls[] = {
        "cudaStreamCreateWithFlags", "cudaEventCreate",      "cudaHostAlloc",       "cudaMallocFromPoolAsync",
        "cudaMemsetAsync",           "cudaEventRecord",      "cudaStreamWaitEvent", "cudaMemcpyAsync",
        "cudaStreamSynchronize",     "cudaEventElapsedTime",
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        CHECK(fail_some_calls(calls[i], cudaErrorUnknown, measure_link) > 0, "%s", calls[i]);
    CHECK(live_now().streams == 0 && live_now().device_blocks == 0 && live_now().pinned_blocks == 0);
}
