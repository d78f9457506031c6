/* The latency of one access: a thread follows a chain of pointers. The links are further apart than the memory that one
 * access brings along. */
#include <cuda_runtime_api.h>

#include "cuda/lab/launches.h"
#include "gpu/device.h"
#include "lab/base/probes.h"
#include "lab/limits/probe.h"

enum {
    LINK = 4608, /* bytes: no two links in one sector, line or pair of lines, and neighbours in different channels */
    L1_LINKS = 8,
    L2_LINKS = 512, /* 2.25 MiB: more than any L1, less than any L2 */
    STEPS = 16384,  /* 7 ms through DRAM */
    CACHES = 4,     /* in L2 sizes, the memory of the chain through DRAM: more than the caches of translations hold */
    FLUSH = 2,      /* in L2 sizes, other memory written before: one L2 would keep a chain of 16384 lines */
    ADDITIONS = 1024,
    STREAM_ALIGNED = 256, /* bytes, as arrays are */
};

/* Bytes from link to link where each link is in a 2 MiB page of its own. The chain reaches over CACHES times the L2, as
 * the bench's sets do, so that as many translations are cached as in the bench. */
enum { PAGE_LINK = (2 << 20) + LINK };

struct chain {
    unsigned start, steps, links, distance;
    bool past_l1;
    void *flush; /* memory written before each round; NULL: none */
    size_t flush_bytes;
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
flush(const struct probe *probe, const void *argument)
{
    const struct chain *chain = argument;
    return limits_write_launch(chain->flush, chain->flush_bytes, 0, probe->stream);
}

static cudaError_t
go_through(const struct probe *probe, const void *argument)
{
    const struct chain *chain = argument;
    const char *a = probe->memory;
    return limits_stream_launch(a, a + chain->distance, chain->steps, probe->sink, probe->stream);
}

static cudaError_t
add_atomically(const struct probe *probe, const void *argument)
{
    (void)argument;
    return limits_atomic_launch(probe->sink, ADDITIONS, probe->stream);
}

/* Seconds of a step, the best of all rounds but the first, which fills the caches. */
static int
measure_chain(const struct probe *probe, struct chain chain, int rounds, double *step, struct status *status)
{
    const unsigned links = chain.links;
    double seconds;
    chain.steps = STEPS;
    if (probe_time(probe, 0, forge, &chain, "cudaLaunchKernel", &seconds, status) < 0)
        return -1;
    *step = 0;
    for (int round = -1; round < rounds; round++) {
        if (chain.flush && probe_time(probe, 0, flush, &chain, "cudaLaunchKernel", &seconds, status) < 0)
            return -1;
        if (probe_time(probe, 0, follow, &chain, "cudaLaunchKernel", &seconds, status) < 0)
            return -1;
        chain.start = (chain.start + STEPS) % links;
        if (round >= 0 && (*step == 0 || seconds / STEPS < *step))
            *step = seconds / STEPS;
    }
    return 0;
}

/* As measure_chain, for a block's rounds through the two halves of the memory before flushed->flush. */
static int
measure_stream(const struct probe *probe, const struct chain *flushed, int rounds, double *step, struct status *status)
{
    const size_t half = (size_t)((const char *)flushed->flush - (const char *)probe->memory) / 2;
    const size_t most = half / sizeof(unsigned) / (LIMITS_STREAM_THREADS + 1);
    struct chain chain = *flushed;
    chain.distance = (unsigned)(half / STREAM_ALIGNED * STREAM_ALIGNED);
    chain.steps = (unsigned)(most < STEPS ? most : STEPS) - STREAM_ALIGNED / LIMITS_STREAM_THREADS;
    *step = 0;
    for (int round = -1; round < rounds; round++) {
        double seconds;
        if (probe_time(probe, 0, flush, &chain, "cudaLaunchKernel", &seconds, status) < 0 ||
            probe_time(probe, 0, go_through, &chain, "cudaLaunchKernel", &seconds, status) < 0)
            return -1;
        if (round >= 0 && (*step == 0 || seconds / chain.steps < *step))
            *step = seconds / chain.steps;
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
    if (device_enter_relaxed(&scope, device, status) < 0)
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
    const size_t flushed = FLUSH * (size_t)l2;
    if (probe_open(&probe, &scope, bytes + flushed, status) < 0)
        goto done;
    const struct chain through_dram = {.links = links,
                                       .distance = LINK,
                                       .past_l1 = true,
                                       .flush = (char *)probe.memory + bytes,
                                       .flush_bytes = flushed},
                       in_l2 = {.links = L2_LINKS, .distance = LINK, .past_l1 = true},
                       over_pages = {.links = pages, .distance = PAGE_LINK, .past_l1 = true},
                       in_l1 = {.links = L1_LINKS, .distance = LINK};
    if (measure_chain(&probe, through_dram, rounds, &latency->dram, status) < 0 ||
        measure_chain(&probe, in_l2, rounds, &latency->l2, status) < 0 ||
        measure_chain(&probe, over_pages, rounds, &latency->page, status) < 0 ||
        measure_chain(&probe, in_l1, rounds, &latency->l1, status) < 0 ||
        measure_stream(&probe, &through_dram, rounds, &latency->stream, status) < 0 ||
        measure_atomic(&probe, rounds, &latency->atomic, status) < 0)
        goto done;
    result = 0;
done:
    probe_close(&probe);
    device_leave(&scope);
    return result;
}
