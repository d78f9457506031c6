/* Rates and latencies of a device's memory and of its link. */
#include <cuda_runtime_api.h>

#include "cuda/lab/launches.h"
#include "gpu/device.h"
#include "lab/base/probes.h"
#include "lab/limits/probe.h"

/* --- Rates of memory */

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
measure_rates(const struct probe *probe, size_t bytes, unsigned times, int ways, int rounds, struct memory_rates *rates,
              struct status *status)
{
    double *const best[] = {[WRITE] = &rates->write, [READ] = &rates->read, [COPY] = &rates->copy};
    *rates = (struct memory_rates){0};
    for (int round = -1; round < rounds; round++)
        for (int way = 0; way < ways; way++) {
            const struct pass pass = {(enum way)way, bytes, times};
            double seconds = 0;
            if (probe_time(probe, &(struct probe_work){.launch = launch_pass, .argument = &pass}, &seconds, status) < 0)
                return -1;
            const double rate = seconds > 0 ? (double)bytes * times / seconds : 0;
            if (round >= 0 && rate > *best[way])
                *best[way] = rate;
        }
    return 0;
}

int
probe_rates(const struct probe_request *request, union probe_found *found, struct status *status)
{
    struct probe probe;
    struct device_facts facts;
    if (device_facts(request->device, &facts, status) < 0)
        return -1;
    const size_t of_l2 = facts.l2 / 4, bytes = request->bytes > of_l2 ? request->bytes : of_l2;
    int result = probe_open(&probe, request->device, bytes, status);
    if (result == 0)
        result = measure_rates(&probe, request->bytes, 1, COPY + 1, request->rounds, &found->rates.memory, status);
    if (result == 0)
        result = measure_rates(&probe, of_l2, L2_PASSES, READ + 1, request->rounds, &found->rates.l2, status);
    probe_close(&probe);
    return result;
}

/* --- Rates of the link */

enum { UP = 1, DOWN = 2 };

/* Copies up are queued on the probe's stream; `down` branches off at fork and rejoins at join. */
struct link_probe {
    struct probe probe; /* the first half of its memory is copied into, the second half from */
    cudaStream_t down;
    cudaEvent_t fork, join;
    char *host; /* page-locked, as long */
};

struct crossing {
    const struct link_probe *link;
    int ways;
    size_t bytes; /* each way */
    double *rate;
};

static int
link_open(struct link_probe *link, int device, size_t bytes, struct status *status)
{
    if (probe_open(&link->probe, device, 2 * bytes, status) < 0)
        return -1;
    if (CUDA_CALL(status, cudaStreamCreateWithFlags, &link->down, cudaStreamNonBlocking) < 0)
        return -1;
    cudaError_t error = cudaEventCreate(&link->fork);
    if (error == cudaSuccess)
        error = cudaEventCreate(&link->join);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaEventCreate");
    if (CUDA_CALL(status, cudaHostAlloc, (void **)&link->host, 2 * bytes, cudaHostAllocDefault) < 0)
        return -1;
    return CUDA_CALL(status, cudaMemsetAsync, link->probe.memory, 0, 2 * bytes, link->probe.stream);
}

/* Nothing is queued on `down` that the probe's stream has not waited for, but after an error. */
static void
link_close(struct link_probe *link)
{
    if (link->down) {
        device_ignore(stream_wait(link->down));
        device_ignore(cudaStreamDestroy(link->down));
    }
    if (link->fork)
        device_ignore(cudaEventDestroy(link->fork));
    if (link->join)
        device_ignore(cudaEventDestroy(link->join));
    if (link->host)
        device_ignore(cudaFreeHost(link->host));
    probe_close(&link->probe);
}

static cudaError_t
cross(const struct probe *probe, const void *argument)
{
    const struct crossing *crossing = argument;
    const struct link_probe *link = crossing->link;
    const size_t bytes = crossing->bytes;
    cudaError_t error = cudaEventRecord(link->fork, probe->stream);
    if (error == cudaSuccess)
        error = cudaStreamWaitEvent(link->down, link->fork, cudaEventWaitDefault);
    if (error == cudaSuccess && crossing->ways & UP)
        error = cudaMemcpyAsync(probe->memory, link->host, bytes, cudaMemcpyHostToDevice, probe->stream);
    if (error == cudaSuccess && crossing->ways & DOWN)
        error = cudaMemcpyAsync(link->host + bytes, (char *)probe->memory + bytes, bytes, cudaMemcpyDeviceToHost,
                                link->down);
    if (error == cudaSuccess)
        error = cudaEventRecord(link->join, link->down);
    return error == cudaSuccess ? cudaStreamWaitEvent(probe->stream, link->join, cudaEventWaitDefault) : error;
}

int
probe_link(const struct probe_request *request, union probe_found *found, struct status *status)
{
    struct link_rates *rates = &found->link;
    struct link_probe link = {0};
    const struct crossing crossings[] = {{&link, UP, request->bytes, &rates->to_device},
                                         {&link, DOWN, request->bytes, &rates->to_host},
                                         {&link, UP | DOWN, request->bytes, &rates->both}};
    *rates = (struct link_rates){0};
    int result = link_open(&link, request->device, request->bytes, status);
    for (int round = -1; round < request->rounds; round++)
        for (int i = 0; i < 3 && result == 0; i++) {
            const struct crossing *crossing = &crossings[i];
            const double bytes = (double)request->bytes * (crossing->ways == (UP | DOWN) ? 2 : 1);
            double seconds = 0;
            result = probe_time(&link.probe,
                                &(struct probe_work){.launch = cross, .argument = crossing, .what = "cudaMemcpyAsync"},
                                &seconds, status);
            if (round >= 0 && seconds > 0 && bytes / seconds > *crossing->rate)
                *crossing->rate = bytes / seconds;
        }
    link_close(&link);
    return result;
}

/* --- The latency of one access: a thread follows a chain of pointers. The links are further apart than the memory that
 * one access brings along. */

enum {
    LINK = 4608, /* bytes: no two links in one sector, line or pair of lines, and neighbours in different channels */
    L1_LINKS = 8,
    L2_LINKS = 512, /* 2.25 MiB: more than any L1, less than any L2 */
    STEPS = 16384,  /* 7 ms through DRAM */
    CACHES = 4,     /* in L2 sizes, the memory of the chain through DRAM: more than the caches of translations cover */
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
make_chain(const struct probe *probe, const void *argument)
{
    const struct chain *chain = argument;
    return limits_chain_launch(probe->memory, chain->links, chain->distance, probe->stream);
}

static cudaError_t
flush(const struct probe *probe, const void *argument)
{
    const struct chain *chain = argument;
    return chain->flush ? limits_write_launch(chain->flush, chain->flush_bytes, 0, probe->stream) : cudaSuccess;
}

static cudaError_t
read_two_arrays(const struct probe *probe, const void *argument)
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

/* Seconds of a step, the best of all rounds but the first, which fills the caches. Each goes on where the one before
 * has ended. */
static int
measure_chain(const struct probe *probe, struct chain chain, int rounds, double *step, struct status *status)
{
    const struct probe_work work = {.launch = follow, .argument = &chain, .before = flush};
    double seconds;
    chain.steps = STEPS;
    if (probe_time(probe, &(struct probe_work){.launch = make_chain, .argument = &chain}, &seconds, status) < 0)
        return -1;
    *step = 0;
    for (int round = -1; round < rounds; round++) {
        if (probe_time(probe, &work, &seconds, status) < 0)
            return -1;
        chain.start = (chain.start + STEPS) % chain.links;
        if (round >= 0 && (*step == 0 || seconds / STEPS < *step))
            *step = seconds / STEPS;
    }
    return 0;
}

/* Seconds of a block's round through the two halves of the memory before flushed->flush. */
static int
measure_stream(const struct probe *probe, const struct chain *flushed, int rounds, double *step, struct status *status)
{
    const size_t half = (size_t)((const char *)flushed->flush - (const char *)probe->memory) / 2;
    const size_t most = half / sizeof(unsigned) / (LIMITS_STREAM_THREADS + 1);
    struct chain chain = *flushed;
    chain.distance = (unsigned)(half / STREAM_ALIGNED * STREAM_ALIGNED);
    chain.steps = (unsigned)(most < STEPS ? most : STEPS) - STREAM_ALIGNED / LIMITS_STREAM_THREADS;
    const struct probe_work work = {.launch = read_two_arrays, .argument = &chain, .before = flush};
    const int result = probe_best(probe, &work, rounds, step, status);
    *step /= chain.steps;
    return result;
}

int
probe_latency(const struct probe_request *request, union probe_found *found, struct status *status)
{
    struct probe probe;
    struct device_facts facts;
    struct memory_latency *latency = &found->latency;
    const int rounds = request->rounds;
    if (device_facts(request->device, &facts, status) < 0)
        return -1;
    const unsigned links = (unsigned)(CACHES * facts.l2 / LINK) + L2_LINKS;
    const unsigned pages = (unsigned)((size_t)links * LINK / PAGE_LINK) + 1;
    const size_t bytes =
        (size_t)links * LINK > (size_t)pages * PAGE_LINK ? (size_t)links * LINK : (size_t)pages * PAGE_LINK;
    int result = probe_open(&probe, request->device, bytes + FLUSH * facts.l2, status);
    const struct chain through_dram = {.links = links,
                                       .distance = LINK,
                                       .past_l1 = true,
                                       .flush = (char *)probe.memory + bytes,
                                       .flush_bytes = FLUSH * facts.l2},
                       in_l2 = {.links = L2_LINKS, .distance = LINK, .past_l1 = true},
                       over_pages = {.links = pages, .distance = PAGE_LINK, .past_l1 = true},
                       in_l1 = {.links = L1_LINKS, .distance = LINK};
    if (result == 0 &&
        (measure_chain(&probe, through_dram, rounds, &latency->dram, status) < 0 ||
         measure_chain(&probe, in_l2, rounds, &latency->l2, status) < 0 ||
         measure_chain(&probe, over_pages, rounds, &latency->page, status) < 0 ||
         measure_chain(&probe, in_l1, rounds, &latency->l1, status) < 0 ||
         measure_stream(&probe, &through_dram, rounds, &latency->stream, status) < 0 ||
         probe_best(&probe, &(struct probe_work){.launch = add_atomically}, rounds, &latency->atomic, status) < 0))
        result = -1;
    latency->atomic /= (double)ADDITIONS * LIMITS_ATOMIC_THREADS;
    probe_close(&probe);
    return result;
}

/* --- The latency of DRAM under load: from one warp a multiprocessor to as many bytes in flight as its threads can
 * have. */

enum { WARP = 32, VECTOR = 16 };

/* On each multiprocessor. */
static const struct shape {
    unsigned blocks, warps, loads;
} shapes[LIMITS_LOADED] = {
    {1, 1, 1},  {1, 2, 1},  {1, 4, 1},  {1, 8, 1},  {1, 12, 1}, {1, 16, 1}, {1, 20, 1},
    {1, 24, 1}, {1, 32, 1}, {1, 24, 2}, {1, 32, 2}, {1, 24, 4}, {1, 32, 4}, {2, 32, 4},
};

static cudaError_t
read_loaded(const struct probe *probe, const void *argument)
{
    return limits_loaded_launch(probe->memory, argument, probe->sink, probe->stream);
}

static int
measure_point(const struct probe *probe, const struct device_facts *facts, const struct shape *shape,
              const struct probe_request *request, struct loaded_latency *point, struct status *status)
{
    const unsigned threads = shape->warps * WARP;
    *point = (struct loaded_latency){0};
    if (shape->blocks * threads > (unsigned)facts->threads_per_multiprocessor)
        return 0;
    struct limits_load load = {shape->blocks * (unsigned)facts->multiprocessors, threads, shape->loads, 0};
    const size_t round_bytes = (size_t)load.blocks * load.threads * load.loads * VECTOR;
    load.rounds = (unsigned)(request->bytes / round_bytes);
    double best;
    if (load.rounds == 0)
        return 0;
    if (probe_best(probe, &(struct probe_work){.launch = read_loaded, .argument = &load}, request->rounds, &best,
                   status) < 0)
        return -1;
    point->bytes = round_bytes / (size_t)facts->multiprocessors;
    point->seconds = best / load.rounds;
    point->rate = best > 0 ? (double)round_bytes * load.rounds / best : 0;
    return 0;
}

int
probe_loaded(const struct probe_request *request, union probe_found *found, struct status *status)
{
    struct device_facts facts;
    struct probe probe;
    double seconds;
    if (device_facts(request->device, &facts, status) < 0)
        return -1;
    const struct pass zero = {WRITE, request->bytes, 1};
    int result = probe_open(&probe, request->device, request->bytes, status);
    if (result == 0)
        result = probe_time(&probe, &(struct probe_work){.launch = launch_pass, .argument = &zero}, &seconds, status);
    for (int i = 0; i < LIMITS_LOADED && result == 0; i++)
        result = measure_point(&probe, &facts, &shapes[i], request, &found->loaded[i], status);
    probe_close(&probe);
    return result;
}
