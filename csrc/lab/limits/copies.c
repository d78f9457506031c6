/* How long copies of every size take, one way, between the host's memory and the device's: of page-locked memory and of
 * ordinary memory, which the driver copies a second time; waited for, and behind another in a stream. */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cuda/kernels.h"
#include "gpu/device.h"
#include "lab/base/probes.h"
#include "lab/limits/probe.h"

enum {
    SMALLEST = 4 << 10, /* of less the link takes 0.1 us, whatever it is */
    STEP = 4,
    ROUNDS = 15,
    ROUNDS_OF_LARGE = 5,
    LARGE = 4 << 20,
    QUEUED = 8, /* copies behind one another, of large ones fewer */
    QUEUED_BYTES = 32 << 20,
    ALTERNATIONS = 32,
    KEPT = 6, /* buffers of each kind that are copied in turn: as many arrays as a bench of transfers goes round, whose
               * caches keep of each what they keep there */
    HEAD_START = 800000, /* cycles, 0.4 ms: the host queues a copy or a launch in 4 us at most */
    HUGE_FROM = 4 << 20, /* as NumPy asks for its arrays */
    HUGE_PAGE = 2 << 20,
};

struct copies {
    struct probe probe;      /* `memory` is the device's end */
    char *pinned, *ordinary; /* KEPT buffers of the most bytes */
};

struct queue {
    const struct copies *copies;
    enum cudaMemcpyKind kind;
    size_t bytes;
    int count;
    bool kernels; /* one behind each copy */
};

/* As ordinary arrays are: on huge pages where they are large. */
static void *
ordinary_memory(size_t bytes)
{
    void *memory = aligned_alloc(HUGE_PAGE, (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    if (memory && bytes >= HUGE_FROM)
        madvise(memory, bytes, MADV_HUGEPAGE);
    return memory ? memset(memory, 0, bytes) : NULL;
}

static int
copies_open(struct copies *copies, const struct device_scope *scope, size_t bytes, struct status *status)
{
    if (probe_open(&copies->probe, scope, bytes, status) < 0)
        return -1;
    const cudaError_t error = cudaHostAlloc((void **)&copies->pinned, KEPT * bytes, cudaHostAllocDefault);
    if (error != cudaSuccess) {
        copies->pinned = NULL;
        return device_status(status, error, "cudaHostAlloc");
    }
    copies->ordinary = ordinary_memory(KEPT * bytes);
    if (!copies->ordinary)
        return status_set(status, STATUS_MEMORY, "there is no memory for a probe of %zu bytes", KEPT * bytes);
    memset(copies->pinned, 0, KEPT * bytes);
    const cudaError_t waited = stream_wait(copies->probe.stream);
    return waited == cudaSuccess ? 0 : device_status(status, waited, "cudaStreamSynchronize");
}

static void
copies_close(const struct copies *copies)
{
    if (copies->pinned)
        device_ignore(cudaFreeHost(copies->pinned));
    free(copies->ordinary);
    probe_close(&copies->probe);
}

static int
rounds_of(size_t bytes)
{
    return bytes > LARGE ? ROUNDS_OF_LARGE : ROUNDS;
}

/* Seconds of the host until cudaMemcpy returns; the median. */
static int
waited_copy(const struct copies *copies, char *hosts, enum cudaMemcpyKind kind, size_t bytes, double *seconds,
            struct status *status)
{
    double each[ROUNDS];
    void *device = copies->probe.memory;
    const bool up = kind == cudaMemcpyHostToDevice;
    for (int round = -KEPT; round < rounds_of(bytes); round++) {
        void *host = hosts + (size_t)(round + KEPT) % KEPT * bytes;
        const double begin = now_seconds();
        const cudaError_t error = cudaMemcpy(up ? device : host, up ? host : device, bytes, kind);
        each[round < 0 ? 0 : round] = now_seconds() - begin;
        if (error != cudaSuccess)
            return device_status(status, error, "cudaMemcpy");
    }
    *seconds = probe_median(each, rounds_of(bytes));
    return 0;
}

/* Seconds of the host for each of some copies from ordinary memory, called as if it need not wait; the median. */
static int
staged_copy(const struct copies *copies, int count, size_t bytes, double *seconds, struct status *status)
{
    double each[ROUNDS];
    size_t turn = 0;
    for (int round = -1; round < rounds_of(bytes); round++) {
        const double begin = now_seconds();
        cudaError_t error = cudaSuccess;
        for (int i = 0; i < count && error == cudaSuccess; i++)
            error = cudaMemcpyAsync(copies->probe.memory, copies->ordinary + turn++ % KEPT * bytes, bytes,
                                    cudaMemcpyHostToDevice, copies->probe.stream);
        each[round < 0 ? 0 : round] = (now_seconds() - begin) / count;
        const cudaError_t waited = stream_wait(copies->probe.stream);
        if (error != cudaSuccess || waited != cudaSuccess)
            return device_status(status, error != cudaSuccess ? error : waited, "cudaMemcpyAsync");
    }
    *seconds = probe_median(each, rounds_of(bytes));
    return 0;
}

static cudaError_t
queue_copies(const struct probe *probe, const void *argument)
{
    const struct queue *queue = argument;
    void *host = queue->copies->pinned, *device = probe->memory;
    const bool up = queue->kind == cudaMemcpyHostToDevice;
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < queue->count && error == cudaSuccess; i++) {
        error = cudaMemcpyAsync(up ? device : host, up ? host : device, queue->bytes, queue->kind, probe->stream);
        if (error == cudaSuccess && queue->kernels)
            error = limits_empty_launch(1, 1, 0, probe->stream);
    }
    return error;
}

/* Seconds of the device from one to the next; the median. */
static int
queued_copy(const struct queue *queue, double *seconds, struct status *status)
{
    double each[ROUNDS];
    for (int round = -1; round < rounds_of(queue->bytes); round++)
        if (probe_time(&queue->copies->probe, HEAD_START, queue_copies, queue, "cudaMemcpyAsync",
                       &each[round < 0 ? 0 : round], status) < 0)
            return -1;
    *seconds = probe_median(each, rounds_of(queue->bytes)) / queue->count;
    return 0;
}

static int
measure_size(const struct copies *copies, size_t bytes, struct copy_seconds *found, struct status *status)
{
    const size_t fit = QUEUED_BYTES / bytes;
    struct queue queue = {copies, cudaMemcpyHostToDevice, bytes, fit < 1 ? 1 : fit > QUEUED ? QUEUED : (int)fit, false};
    found->bytes = bytes;
    if (waited_copy(copies, copies->pinned, cudaMemcpyHostToDevice, bytes, &found->to_device, status) < 0 ||
        waited_copy(copies, copies->pinned, cudaMemcpyDeviceToHost, bytes, &found->to_host, status) < 0 ||
        waited_copy(copies, copies->ordinary, cudaMemcpyHostToDevice, bytes, &found->pageable_to_device, status) < 0 ||
        waited_copy(copies, copies->ordinary, cudaMemcpyDeviceToHost, bytes, &found->pageable_to_host, status) < 0 ||
        staged_copy(copies, queue.count, bytes, &found->staged_to_device, status) < 0 ||
        queued_copy(&queue, &found->queued_to_device, status) < 0)
        return -1;
    queue.kind = cudaMemcpyDeviceToHost;
    return queued_copy(&queue, &found->queued_to_host, status);
}

/* What a kernel that does nothing takes between two copies of a stream, which other parts of the GPU make. */
static int
measure_kernel_between(const struct copies *copies, const struct copy_seconds *smallest, double *seconds,
                       struct status *status)
{
    const struct queue queue = {copies, cudaMemcpyHostToDevice, smallest->bytes, ALTERNATIONS, true};
    double with_kernels;
    if (queued_copy(&queue, &with_kernels, status) < 0)
        return -1;
    *seconds = with_kernels > smallest->queued_to_device ? with_kernels - smallest->queued_to_device : 0;
    return 0;
}

int
limits_copies(int device, size_t most, struct copy_limits *limits, struct status *status)
{
    struct device_scope scope;
    if (device_enter_relaxed(&scope, device, status) < 0)
        return -1;

    int result = -1;
    struct copies copies = {0};
    *limits = (struct copy_limits){0};
    if (copies_open(&copies, &scope, most < SMALLEST ? SMALLEST : most, status) < 0)
        goto done;
    size_t bytes = SMALLEST;
    do {
        if (measure_size(&copies, bytes, &limits->sizes[limits->count], status) < 0)
            goto done;
        limits->count++;
        bytes *= STEP;
    } while (bytes <= most && limits->count < LIMITS_SIZES);
    result = measure_kernel_between(&copies, &limits->sizes[0], &limits->kernel_between, status);
done:
    copies_close(&copies);
    device_leave(&scope);
    return result;
}
