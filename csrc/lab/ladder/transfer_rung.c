#include "lab/ladder/transfer_rung.h"

#include <stdint.h>

#include "base/now.h"
#include "gpu/device.h"

#define KERNELS(KERNEL)                                                                                                \
    KERNEL(KERNEL_NAIVE, naive)                                                                                        \
    KERNEL(KERNEL_RESTRICT, restrict)                                                                                  \
    KERNEL(KERNEL_FLOAT4, float4)                                                                                      \
    KERNEL(KERNEL_TUNED, tuned)                                                                                        \
    KERNEL(KERNEL_SINGLE_THREAD, single_thread)                                                                        \
    KERNEL(KERNEL_SINGLE_BLOCK, single_block)                                                                          \
    KERNEL(KERNEL_GRID_STRIDE, grid_stride)                                                                            \
    KERNEL(KERNEL_CHUNKED, chunked)

#define DECLARE(number, name)  extern const struct rung rung_##name;
#define POINT_TO(number, name) [number] = &rung_##name,
#define NAME(number, name)     [number] = #name,

KERNELS(DECLARE)

static const struct rung *const kernels[] = {KERNELS(POINT_TO)};

const char *const transfer_kernel_names[] = {KERNELS(NAME) NULL};
const char transfer_kernel_what[] =
    "0 naive, 1 restrict, 2 float4, 3 tuned, 4 single_thread; 5 single_block and 6 grid_stride add to a sum that is "
    "cleared first; 7 chunked, which is float4 with restrict";
const char transfer_allocates_what[] = "1: arrays and streams are made and freed inside the timed part";

/* Whether [memory, memory + bytes) begins and ends in page-locked memory. */
static int
is_pinned(const void *memory, size_t bytes, bool *pinned, struct status *status)
{
    const unsigned char *const ends[] = {memory, (const unsigned char *)memory + bytes - 1};
    *pinned = true;
    for (int i = 0; i < 2; i++) {
        struct cudaPointerAttributes attributes;
        cudaError_t error = cudaPointerGetAttributes(&attributes, ends[i]);
        if (error != cudaSuccess)
            return device_status(status, error, "cudaPointerGetAttributes");
        *pinned = *pinned && attributes.type == cudaMemoryTypeHost;
    }
    return 0;
}

static int
require_pinned(const struct transfer_run *run, struct status *status)
{
    const void *const operands[] = {run->call->a, run->call->b, run->call->c};
    static const char *const names[] = {"a", "b", "out"};
    for (int i = 0; i < 3; i++) {
        bool pinned;
        if (is_pinned(operands[i], run->bytes, &pinned, status) < 0)
            return -1;
        if (!pinned)
            return status_set(status, STATUS_VALUE, "rung %s takes page-locked memory and %s is not: use empty_pinned",
                              run->rung->name, names[i]);
    }
    return 0;
}

int
transfer_run_enter(struct transfer_run *run, const struct rung *rung, const struct rung_call *call,
                   struct status *status)
{
    const struct rung *kernel = kernels[call->params[PARAM_KERNEL]];
    *run = (struct transfer_run){.rung = rung, .call = call, .kernel = kernel};
    run->width = component_size[call->component];
    run->bytes = call->n * run->width;
    if (!(kernel->components >> call->component & 1))
        return status_set(
            status, STATUS_VALUE,
            "rung %s: the kernel %s does not take elements of this dtype; naive, float4 and tuned take all", rung->name,
            kernel->name);
    if (device_enter_relaxed(&run->scope, call->device, status) < 0)
        return -1;
    run->entered = true;
    return rung->memory == RUNG_MEMORY_PINNED ? require_pinned(run, status) : 0;
}

int
transfer_run_leave(struct transfer_run *run, int result, struct status *status)
{
    if (!run->entered)
        return result;
    if (timeline_close(run->call->timeline, result == 0, status) < 0)
        result = -1;
    device_leave(&run->scope);
    if (result == 0 && run->call->seconds)
        *run->call->seconds = run->seconds;
    return result;
}

void
transfer_clock_start(struct transfer_run *run)
{
    run->begin = now_seconds();
}

void
transfer_clock_stop(struct transfer_run *run)
{
    run->seconds = now_seconds() - run->begin;
}

bool
transfer_kernel_accumulates(const struct transfer_run *run)
{
    return run->kernel->sum != SUM_WRITTEN;
}

static int
copy_queue(const struct transfer_run *run, const struct transfer_chunk *chunk, enum timeline_what what, void *target,
           const void *source, struct status *status)
{
    const enum cudaMemcpyKind kind = what == TIMELINE_TO_DEVICE ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    const size_t bytes = chunk->count * run->width;
    const size_t entry = timeline_begin(run->call->timeline, what, chunk->stream_number, chunk->stream, chunk->number);
    const cudaError_t error = chunk->blocking ? cudaMemcpy(target, source, bytes, kind)
                                              : cudaMemcpyAsync(target, source, bytes, kind, chunk->stream);
    timeline_end(run->call->timeline, entry, chunk->stream);
    return error == cudaSuccess ? 0 : device_status(status, error, chunk->blocking ? "cudaMemcpy" : "cudaMemcpyAsync");
}

int
transfer_kernel_queue(const struct transfer_run *run, const void *a, const void *b, void *c, size_t count,
                      cudaStream_t stream, int stream_number, size_t chunk, struct status *status)
{
    struct rung_call add = {.component = run->call->component, .a = a, .b = b, .c = c, .n = count, .stream = stream};
    rung_usual_params(run->kernel, &add);
    const size_t entry = timeline_begin(run->call->timeline, TIMELINE_KERNEL, stream_number, stream, chunk);
    const int error = run->kernel->launch(&add);
    timeline_end(run->call->timeline, entry, stream);
    return error == cudaSuccess ? 0 : device_status(status, error, run->kernel->name);
}

int
transfer_chunk_up(const struct transfer_run *run, const struct transfer_chunk *chunk, struct status *status)
{
    if (transfer_kernel_accumulates(run)) {
        cudaError_t error = cudaMemsetAsync(chunk->device[2], 0, chunk->count * run->width, chunk->stream);
        if (error != cudaSuccess)
            return device_status(status, error, "cudaMemsetAsync");
    }
    if (copy_queue(run, chunk, TIMELINE_TO_DEVICE, chunk->device[0], chunk->a, status) < 0)
        return -1;
    return copy_queue(run, chunk, TIMELINE_TO_DEVICE, chunk->device[1], chunk->b, status);
}

int
transfer_chunk_add(const struct transfer_run *run, const struct transfer_chunk *chunk, struct status *status)
{
    return transfer_kernel_queue(run, chunk->device[0], chunk->device[1], chunk->device[2], chunk->count, chunk->stream,
                                 chunk->stream_number, chunk->number, status);
}

int
transfer_chunk_down(const struct transfer_run *run, const struct transfer_chunk *chunk, struct status *status)
{
    return copy_queue(run, chunk, TIMELINE_TO_HOST, chunk->c, chunk->device[2], status);
}

int
transfer_chunk_queue(const struct transfer_run *run, const struct transfer_chunk *chunk, struct status *status)
{
    if (transfer_chunk_up(run, chunk, status) < 0 || transfer_chunk_add(run, chunk, status) < 0)
        return -1;
    return transfer_chunk_down(run, chunk, status);
}
