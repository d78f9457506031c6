/* probes.h on the CUDA-runtime double: what is measured can be, and a call that fails leaves nothing behind. */
#include <cuda_runtime_api.h>

#include "check.h"
#include "double.h"
#include "failures.h"
#include "lab/base/probes.h"

static int
measure_device(struct status *status)
{
    struct memory_rates rates;
    if (limits_device(1, 1 << 20, 1, &rates, status) < 0)
        return -1;
    CHECK(rates.read > 0 && rates.write > 0 && rates.copy > 0);
    return 0;
}

static int
measure_l2(struct status *status)
{
    struct memory_rates rates;
    if (limits_l2(1, 1 << 18, 1, &rates, status) < 0)
        return -1;
    CHECK(rates.read > 0 && rates.write > 0);
    return 0;
}

static int
measure_latency(struct status *status)
{
    struct memory_latency latency = {0};
    if (limits_latency(1, 1, &latency, status) < 0)
        return -1;
    CHECK(latency.l1 > 0 && latency.page > 0 && latency.l2 > 0 && latency.dram > 0 && latency.stream > 0 &&
          latency.atomic > 0);
    return 0;
}

static int
measure_loaded(struct status *status)
{
    struct loaded_latency points[LIMITS_LOADED];
    if (limits_loaded(1, 2 << 20, 1, points, status) < 0)
        return -1;
    for (int i = 0; i < LIMITS_LOADED; i++) {
        CHECK(points[i].seconds > 0 && points[i].rate > 0, "%d", i);
        CHECK(i == 0 || points[i].bytes > points[i - 1].bytes, "%d", i);
    }
    return 0;
}

static int
measure_launches(struct status *status)
{
    struct launch_limits limits = {0};
    if (limits_launch(1, 1, &limits, status) < 0)
        return -1;
    CHECK(limits.kernel > 0 && limits.block >= 0 && limits.turnaround >= 0 && limits.queued >= 0 && limits.node >= 0 &&
          limits.issued > 0);
    return 0;
}

static void
no_probe_leaves_anything(void)
{
    static const struct {
        const char *name;
        int (*measure)(struct status *status);
    } probes[] = {
        {"device", measure_device}, {"l2", measure_l2},           {"latency", measure_latency},
        {"loaded", measure_loaded}, {"launch", measure_launches},
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
    struct link_limits found = {0};
    if (limits_link(1, 1 << 16, 1, &found, status) < 0)
        return -1;
    CHECK(found.to_device > 0 && found.to_host > 0 && found.both > 0);
    return 0;
}

static void
the_link_probe_leaves_nothing(void)
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

int
main(void)
{
    RUN(no_probe_leaves_anything);
    RUN(the_link_probe_leaves_nothing);
    return check_report();
}
