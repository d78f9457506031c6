/* Rates and latencies of a device's memory and of its link. */
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

/* The latency of one access: a thread follows a chain of pointers. The links are further apart than the memory that one
 * access brings along. */

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

/* The latency of DRAM under load: from one warp a multiprocessor to as many bytes in flight as its threads can hold. */

enum { WARP = 32, VECTOR = 16 };

/* On each multiprocessor. */
static const struct shape {
    unsigned blocks, warps, loads;
} shapes[LIMITS_LOADED] = {
    {1, 1, 1},  {1, 2, 1},  {1, 4, 1},  {1, 8, 1},  {1, 12, 1}, {1, 16, 1}, {1, 20, 1},
    {1, 24, 1}, {1, 32, 1}, {1, 24, 2}, {1, 32, 2}, {1, 24, 4}, {1, 32, 4}, {2, 32, 4},
};

static cudaError_t
zero(const struct probe *probe, const void *argument)
{
    const size_t *bytes = argument;
    return limits_write_launch(probe->memory, *bytes, 0, probe->stream);
}

static cudaError_t
read_loaded(const struct probe *probe, const void *argument)
{
    return limits_loaded_launch(probe->memory, argument, probe->sink, probe->stream);
}

static int
measure_point(const struct probe *probe, const struct device_facts *facts, const struct shape *shape, size_t bytes,
              int rounds, struct loaded_latency *point, struct status *status)
{
    const unsigned threads = shape->warps * WARP;
    if (shape->blocks * threads > (unsigned)facts->threads_per_multiprocessor)
        return 0;
    struct limits_load load = {shape->blocks * (unsigned)facts->multiprocessors, threads, shape->loads, 0};
    const size_t round_bytes = (size_t)load.blocks * load.threads * load.loads * VECTOR;
    load.rounds = (unsigned)(bytes / round_bytes);
    if (load.rounds == 0)
        return 0;
    double best = 0;
    for (int round = -1; round < rounds; round++) { /* the first warms up */
        double seconds;
        if (probe_time(probe, 0, read_loaded, &load, "cudaLaunchKernel", &seconds, status) < 0)
            return -1;
        if (round >= 0 && (best == 0 || seconds < best))
            best = seconds;
    }
    point->bytes = round_bytes / (size_t)facts->multiprocessors;
    point->seconds = best / load.rounds;
    point->rate = best > 0 ? (double)round_bytes * load.rounds / best : 0;
    return 0;
}

int
limits_loaded(int device, size_t bytes, int rounds, struct loaded_latency points[LIMITS_LOADED], struct status *status)
{
    struct device_scope scope;
    struct device_facts facts;
    if (device_facts(device, &facts, status) < 0 || device_enter_relaxed(&scope, device, status) < 0)
        return -1;

    int result = -1;
    double seconds;
    struct probe probe = {0};
    for (int i = 0; i < LIMITS_LOADED; i++)
        points[i] = (struct loaded_latency){0};
    if (probe_open(&probe, &scope, bytes, status) < 0 ||
        probe_time(&probe, 0, zero, &bytes, "cudaLaunchKernel", &seconds, status) < 0)
        goto done;
    for (int i = 0; i < LIMITS_LOADED; i++)
        if (measure_point(&probe, &facts, &shapes[i], bytes, rounds, &points[i], status) < 0)
            goto done;
    result = 0;
done:
    probe_close(&probe);
    device_leave(&scope);
    return result;
}
