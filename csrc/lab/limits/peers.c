/* Patterns of a memory test: in a device's memory, and on their way from one GPU's memory into another's. */
#include <cuda_runtime_api.h>

#include "cuda/lab/launches.h"
#include "gpu/device.h"
#include "gpu/stream.h"
#include "lab/base/probes.h"
#include "lab/limits/probe.h"

static cudaError_t
launch_write(const struct probe *probe, const void *argument)
{
    const struct pattern_words *words = argument;
    return limits_pattern_write_launch(words->memory, words->count, &words->pattern, probe->stream);
}

static cudaError_t
launch_check(const struct probe *probe, const void *argument)
{
    const struct pattern_words *words = argument;
    return limits_pattern_check_launch(words->memory, words->count, &words->pattern, probe->memory, probe->stream);
}

/* pattern_device() on a probe that is open; to check, its memory has room for *found. */
static int
pattern_on(const struct probe *probe, const struct pattern_words *words, struct pattern_found *found, double *seconds,
           struct status *status)
{
    if (!found)
        return probe_time(probe, &(struct probe_work){.launch = launch_write, .argument = words}, seconds, status);
    if (CUDA_CALL(status, cudaMemsetAsync, probe->memory, 0, sizeof *found, probe->stream) < 0)
        return -1;
    if (probe_time(probe, &(struct probe_work){.launch = launch_check, .argument = words}, seconds, status) < 0)
        return -1;
    cudaError_t error = cudaMemcpyAsync(found, probe->memory, sizeof *found, cudaMemcpyDeviceToHost, probe->stream);
    const cudaError_t waited = stream_wait(probe->stream);
    if (error == cudaSuccess)
        error = waited;
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaMemcpyAsync");
}

int
pattern_device(int device, void *stream, const struct pattern_words *words, struct pattern_found *found,
               double *seconds, struct status *status)
{
    struct probe probe;
    int result = probe_open(&probe, device, found ? sizeof *found : 0, status);
    if (result == 0)
        result = stream_join(probe.scope.device, stream, probe.stream, status);
    if (result == 0)
        result = pattern_on(&probe, words, found, seconds, status);
    probe_close(&probe);
    return result;
}

int
limits_memory(int device, size_t *left, size_t *all, struct status *status)
{
    struct device_scope scope;
    if (device_enter_relaxed(&scope, device, status) < 0)
        return -1;
    const cudaError_t error = cudaMemGetInfo(left, all);
    device_leave(&scope);
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaMemGetInfo");
}

/* From one GPU's memory into another's: how fast, by which ways, and whether every bit arrives. Each call of a copy
 * that goes wrong may succeed, so that only the bits tell. */

/* One of the two GPUs. */
struct side {
    struct probe probe; /* its memory has room for a struct pattern_found; entered while it works */
    void *memory;       /* plain, as other programs' is: the access that is switched on here is to such memory */
    bool granted;       /* peer access that was switched on here */
};

struct pair {
    struct side from, to;
    size_t bytes;
};

static int
side_open(struct side *side, int device, int peer, bool access, size_t bytes, struct status *status)
{
    if (probe_open(&side->probe, device, sizeof(struct pattern_found), status) < 0)
        return -1;
    if (CUDA_CALL(status, cudaMalloc, &side->memory, bytes) < 0)
        return -1;
    if (access) {
        const cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
        side->granted = error == cudaSuccess;
        if (error != cudaSuccess && error != cudaErrorPeerAccessAlreadyEnabled)
            return device_status(status, error, "cudaDeviceEnablePeerAccess");
        device_ignore(error);
    }
    probe_leave(&side->probe);
    return 0;
}

/* Takes a side that was never opened too. */
static void
side_close(struct side *side, int peer)
{
    struct status ignored;
    if (side->probe.stream && (side->probe.entered || probe_enter(&side->probe, &ignored) == 0)) {
        if (side->memory)
            device_ignore(cudaFree(side->memory));
        if (side->granted)
            device_ignore(cudaDeviceDisablePeerAccess(peer));
    }
    probe_close(&side->probe);
}

static cudaError_t
launch_copy(const struct probe *probe, const void *argument)
{
    const struct pair *pair = argument;
    return cudaMemcpyPeerAsync(pair->to.memory, pair->to.probe.scope.device, pair->from.memory,
                               pair->from.probe.scope.device, pair->bytes, probe->stream);
}

static cudaError_t
launch_kernel(const struct probe *probe, const void *argument)
{
    const struct pair *pair = argument;
    return limits_copy_words_launch(pair->from.memory, pair->to.memory, pair->bytes, probe->stream);
}

/* One pass by this way; its kernel runs on the target where it reads, on the source where it writes. */
static int
pass(struct pair *pair, enum peer_way way, double *seconds, struct status *status)
{
    struct probe *runs = way == PEER_READ ? &pair->to.probe : &pair->from.probe;
    const struct probe_work copy = {.launch = launch_copy, .argument = pair, .what = "cudaMemcpyPeerAsync"},
                            kernel = {.launch = launch_kernel, .argument = pair};
    if (probe_enter(runs, status) < 0)
        return -1;
    const int result = probe_time(runs, way == PEER_COPY ? &copy : &kernel, seconds, status);
    probe_leave(runs);
    return result;
}

/* Writes the pattern into this side's memory where `found` is NULL, else looks for it. */
static int
pattern_in(struct side *side, const struct pattern *pattern, size_t bytes, struct pattern_found *found,
           struct status *status)
{
    const struct pattern_words words = {side->memory, bytes / sizeof(uint64_t), *pattern};
    double seconds;
    if (probe_enter(&side->probe, status) < 0)
        return -1;
    const int result = pattern_on(&side->probe, &words, found, &seconds, status);
    probe_leave(&side->probe);
    return result;
}

/* Sends a pattern over what is its complement in every bit of the target, and looks at each word that has arrived. */
static int
compare(struct pair *pair, enum peer_way way, struct pattern_found *found, struct status *status)
{
    const struct pattern sent = {.kind = PATTERN_ADDRESS, .first = (uint64_t)way << 40};
    const struct pattern before = {.kind = PATTERN_INVERSE, .first = sent.first};
    double seconds;
    if (pattern_in(&pair->from, &sent, pair->bytes, NULL, status) < 0 ||
        pattern_in(&pair->to, &before, pair->bytes, NULL, status) < 0 || pass(pair, way, &seconds, status) < 0)
        return -1;
    return pattern_in(&pair->to, &sent, pair->bytes, found, status);
}

static int
ask(int from, int to, struct peer_limits *limits, struct status *status)
{
    int there = 0, back = 0, atomics = 0;
    cudaError_t error = cudaDeviceCanAccessPeer(&there, from, to);
    if (error == cudaSuccess)
        error = cudaDeviceCanAccessPeer(&back, to, from);
    if (error == cudaSuccess)
        error = cudaDeviceGetP2PAttribute(&limits->rank, cudaDevP2PAttrPerformanceRank, from, to);
    if (error == cudaSuccess)
        error = cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, from, to);
    limits->access = there && back;
    limits->atomics = atomics;
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaDeviceGetP2PAttribute");
}

int
limits_peers(int from, int to, size_t bytes, int rounds, struct peer_limits *limits, struct status *status)
{
    struct pair pair = {.bytes = bytes};
    int result = -1;
    *limits = (struct peer_limits){0};
    if (device_start(from, status) < 0 || device_start(to, status) < 0 || ask(from, to, limits, status) < 0)
        return -1;
    if (side_open(&pair.from, from, to, limits->access, bytes, status) < 0 ||
        side_open(&pair.to, to, from, limits->access, bytes, status) < 0)
        goto done;
    for (int way = PEER_COPY; way < (limits->access ? PEER_WAYS : PEER_READ); way++) {
        if (compare(&pair, (enum peer_way)way, &limits->way[way].found, status) < 0)
            goto done;
        for (int round = 0; round < rounds; round++) {
            double seconds = 0;
            if (pass(&pair, (enum peer_way)way, &seconds, status) < 0)
                goto done;
            if (seconds > 0 && (double)bytes / seconds > limits->way[way].rate)
                limits->way[way].rate = (double)bytes / seconds;
        }
    }
    result = 0;
done:
    side_close(&pair.from, to);
    side_close(&pair.to, from);
    return result;
}
