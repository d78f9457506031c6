/* How long one access takes that the next one waits for: a thread follows a chain of pointers, whose links are further
 * apart than anything that comes with one access. */
#include <cuda_runtime_api.h>

#include "device.h"
#include "kernels.h"
#include "probe.h"
#include "probes.h"

enum {
    LINK = 4608, /* bytes: no two links in one sector, line or pair of lines, and neighbours in different channels */
    L1_LINKS = 8,
    L2_LINKS = 512, /* 2.25 MiB: more than any L1, less than any L2 */
    STEPS = 16384,  /* 75 MB of links where nothing repeats: more than an H200's L2; 7 ms */
    CACHES = 4,     /* of the chain through DRAM, so that a chain that comes round finds nothing of itself */
    ADDITIONS = 1024,
};

/* Bytes from link to link where each is in a page of its own, of 2 MiB; over CACHES times the L2, as the bench's sets
 * are, so that as many translations are kept as then. */
enum { PAGE_LINK = (2 << 20) + LINK };

struct chain {
    unsigned start, steps, links, distance;
    bool past_l1;
};

static cudaError_t
follow(const struct probe *probe, const void *argument)
{
    const struct chain *chain = argument;
    const char *start = (const char *)probe->memory + (size_t)chain->start * chain->distance;
    return limits_chase_launch(start, chain->steps, chain->past_l1, probe->sink, probe->stream);
}

static cudaError_t
forge(const struct probe *probe, const void *argument)
{
    const struct chain *chain = argument;
    return limits_chain_launch(probe->memory, chain->links, chain->distance, probe->stream);
}

static cudaError_t
add_atomically(const struct probe *probe, const void *argument)
{
    (void)argument;
    return limits_atomic_launch(probe->sink, ADDITIONS, probe->stream);
}

/* Seconds of a step, the best of the rounds after one that fetches what a cache can keep. */
static int
measure_chain(const struct probe *probe, unsigned links, unsigned distance, bool past_l1, int rounds, double *step,
              struct status *status)
{
    struct chain chain = {.start = 0, .steps = STEPS, .links = links, .distance = distance, .past_l1 = past_l1};
    double seconds;
    if (probe_time(probe, 0, forge, &chain, "cudaLaunchKernel", &seconds, status) < 0)
        return -1;
    *step = 0;
    for (int round = -1; round < rounds; round++) {
        if (probe_time(probe, 0, follow, &chain, "cudaLaunchKernel", &seconds, status) < 0)
            return -1;
        chain.start = (chain.start + STEPS) % links;
        if (round >= 0 && (*step == 0 || seconds / STEPS < *step))
            *step = seconds / STEPS;
    }
    return 0;
}

static int
measure_atomic(const struct probe *probe, int rounds, double *addition, struct status *status)
{
    *addition = 0;
    for (int round = -1; round < rounds; round++) {
        double seconds;
        if (probe_time(probe, 0, add_atomically, NULL, "cudaLaunchKernel", &seconds, status) < 0)
            return -1;
        seconds /= (double)ADDITIONS * LIMITS_ATOMIC_THREADS;
        if (round >= 0 && (*addition == 0 || seconds < *addition))
            *addition = seconds;
    }
    return 0;
}

int
limits_latency(int device, int rounds, struct memory_latency *latency, struct status *status)
{
    struct device_scope scope;
    if (device_enter(&scope, device, status) < 0)
        return -1;

    int result = -1, l2 = 0;
    struct probe probe = {0};
    cudaError_t error = cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, scope.device);
    if (error != cudaSuccess) {
        device_status(status, error, "cudaDeviceGetAttribute");
        goto done;
    }
    const unsigned links = (unsigned)((size_t)CACHES * (size_t)l2 / LINK) + L2_LINKS;
    const unsigned pages = (unsigned)((size_t)links * LINK / PAGE_LINK) + 1;
    const size_t bytes =
        (size_t)links * LINK > (size_t)pages * PAGE_LINK ? (size_t)links * LINK : (size_t)pages * PAGE_LINK;
    if (probe_open(&probe, &scope, bytes, status) < 0)
        goto done;
    if (measure_chain(&probe, links, LINK, true, rounds, &latency->dram, status) < 0 ||
        measure_chain(&probe, L2_LINKS, LINK, true, rounds, &latency->l2, status) < 0 ||
        measure_chain(&probe, pages, PAGE_LINK, true, rounds, &latency->page, status) < 0 ||
        measure_chain(&probe, L1_LINKS, LINK, false, rounds, &latency->l1, status) < 0 ||
        measure_atomic(&probe, rounds, &latency->atomic, status) < 0)
        goto done;
    result = 0;
done:
    probe_close(&probe);
    device_leave(&scope);
    return result;
}
