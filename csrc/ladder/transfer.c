/* The transfer rungs: host array, device, host array, from what anyone writes first to the package's own way.
 *
 * The founding documents time the allocation of the device arrays with the rest: pageable, pinned and streams2 do too.
 * pinned_reused is pinned without it: three copies and a kernel, the best that one stream can do. */
#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "device.h"
#include "device_state.h"
#include "kernels.h"
#include "rung.h"
#include "transfer.h"

enum { STREAMS = 2, CHUNK_BYTES = 16 << 20 };

static int
require_pinned(const struct rung_call *call, const char *rung, struct status *status)
{
    const void *const operands[] = {call->a, call->b, call->c};
    const char *const names[] = {"a", "b", "out"};
    for (int i = 0; i < 3; i++) {
        struct cudaPointerAttributes attributes;
        cudaError_t error = cudaPointerGetAttributes(&attributes, operands[i]);
        if (error != cudaSuccess)
            return device_status(status, error, "cudaPointerGetAttributes");
        if (attributes.type != cudaMemoryTypeHost)
            return status_set(status, STATUS_VALUE, "rung %s takes page-locked memory and %s is not: use empty_pinned",
                              rung, names[i]);
    }
    return 0;
}

struct one_stream {
    const char *name;
    bool pinned; /* refuses other memory */
    bool reused; /* device arrays from the pool, which keeps them mapped from one run to the next */
};

static int
copy_add_copy(const struct rung_call *call, void *const device[3], struct status *status)
{
    const size_t bytes = call->n * lane_size[call->lane];
    const struct add_call add = {.lane = call->lane, .a = device[0], .b = device[1], .c = device[2], .n = call->n};
    cudaError_t error = cudaMemcpy(device[0], call->a, bytes, cudaMemcpyHostToDevice);
    if (error == cudaSuccess)
        error = cudaMemcpy(device[1], call->b, bytes, cudaMemcpyHostToDevice);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaMemcpy");
    error = add_launch(&add);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaLaunchKernel");
    error = cudaMemcpy(call->c, device[2], bytes, cudaMemcpyDeviceToHost);
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaMemcpy");
}

/* Everything on the legacy default stream, each copy waited for. */
static int
run_one_stream(const struct rung_call *call, const struct one_stream *how, struct status *status)
{
    struct device_scope scope;
    if (call->n == 0)
        return 0;
    if (device_enter(&scope, call->device, status) < 0)
        return -1;

    int result = -1;
    void *device[3] = {NULL};
    const size_t bytes = call->n * lane_size[call->lane];
    if (how->pinned && require_pinned(call, how->name, status) < 0)
        goto done;
    for (int i = 0; i < 3; i++) {
        cudaError_t error = cudaSuccess;
        if (how->reused) {
            if (pool_allocate(&scope, NULL, bytes, &device[i], status) < 0)
                goto done;
        } else if ((error = cudaMalloc(&device[i], bytes)) != cudaSuccess) {
            device_status(status, error, "cudaMalloc");
            goto done;
        }
    }
    result = copy_add_copy(call, device, status);
done:
    for (int i = 0; i < 3; i++) {
        if (how->reused)
            pool_release(NULL, device[i]);
        else
            cudaFree(device[i]);
    }
    device_leave(&scope);
    return result;
}

static int
run_pageable(const struct rung_call *call, struct status *status)
{
    return run_one_stream(call, &(struct one_stream){.name = "pageable"}, status);
}

static int
run_pinned(const struct rung_call *call, struct status *status)
{
    return run_one_stream(call, &(struct one_stream){.name = "pinned", .pinned = true}, status);
}

static int
run_pinned_reused(const struct rung_call *call, struct status *status)
{
    return run_one_stream(call, &(struct one_stream){.name = "pinned_reused", .pinned = true, .reused = true}, status);
}

struct stream_slot {
    cudaStream_t stream;
    void *a, *b, *c;
};

static int
stream_slot_open(struct stream_slot *slot, size_t bytes, struct status *status)
{
    cudaError_t error = cudaStreamCreate(&slot->stream);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaStreamCreate");
    error = cudaMalloc(&slot->a, bytes);
    if (error == cudaSuccess)
        error = cudaMalloc(&slot->b, bytes);
    if (error == cudaSuccess)
        error = cudaMalloc(&slot->c, bytes);
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaMalloc");
}

static int
stream_slot_queue(const struct stream_slot *slot, const struct rung_call *call, size_t begin, size_t count,
                  struct status *status)
{
    const size_t width = lane_size[call->lane], offset = begin * width, bytes = count * width;
    const struct add_call add = {
        .lane = call->lane, .a = slot->a, .b = slot->b, .c = slot->c, .n = count, .stream = slot->stream};
    cudaError_t error =
        cudaMemcpyAsync(slot->a, (const char *)call->a + offset, bytes, cudaMemcpyHostToDevice, slot->stream);
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(slot->b, (const char *)call->b + offset, bytes, cudaMemcpyHostToDevice, slot->stream);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaMemcpyAsync");
    error = add_launch(&add);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaLaunchKernel");
    error = cudaMemcpyAsync((char *)call->c + offset, slot->c, bytes, cudaMemcpyDeviceToHost, slot->stream);
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaMemcpyAsync");
}

static int
run_streams2(const struct rung_call *call, struct status *status)
{
    struct device_scope scope;
    if (call->n == 0)
        return 0;
    if (device_enter(&scope, call->device, status) < 0)
        return -1;

    int result = -1;
    struct stream_slot slots[STREAMS] = {{0}};
    const size_t chunk = CHUNK_BYTES / lane_size[call->lane];
    if (require_pinned(call, "streams2", status) < 0)
        goto done;
    for (int i = 0; i < STREAMS; i++)
        if (stream_slot_open(&slots[i], CHUNK_BYTES, status) < 0)
            goto done;
    result = 0;
    for (size_t begin = 0, turn = 0; begin < call->n && result == 0; begin += chunk, turn++) {
        const size_t left = call->n - begin;
        result = stream_slot_queue(&slots[turn % STREAMS], call, begin, left < chunk ? left : chunk, status);
    }
    for (int i = 0; i < STREAMS; i++) {
        cudaError_t error = stream_wait(slots[i].stream);
        if (error != cudaSuccess && result == 0)
            result = device_status(status, error, "cudaStreamSynchronize");
    }
done:
    for (int i = 0; i < STREAMS; i++) {
        cudaFree(slots[i].a);
        cudaFree(slots[i].b);
        cudaFree(slots[i].c);
        if (slots[i].stream)
            cudaStreamDestroy(slots[i].stream);
    }
    device_leave(&scope);
    return result;
}

static int
run_tuned_transfer(const struct rung_call *call, struct status *status)
{
    unsigned fp_flags;
    const struct plan plan = {.route = ROUTE_TRANSFER,
                              .lane = call->lane,
                              .n = call->n,
                              .a = call->a,
                              .b = call->b,
                              .c = call->c,
                              .device = call->device};
    return transfer_add(&plan, &fp_flags, status);
}

enum { ALL_LANES = (1 << LANE_COUNT) - 1 };

static const struct rung pageable = {
    .name = "pageable",
    .kind = RUNG_TRANSFER,
    .changes = "ordinary memory, blocking copies, one kernel; allocates its device arrays inside the timed part",
    .tested = "double",
    .lanes = ALL_LANES,
    .run = run_pageable,
};

static const struct rung pinned = {
    .name = "pinned",
    .kind = RUNG_TRANSFER,
    .changes = "page-locked memory: the copies need no staging; allocates inside the timed part like pageable",
    .tested = "double",
    .lanes = ALL_LANES,
    .run = run_pinned,
};

static const struct rung pinned_reused = {
    .name = "pinned_reused",
    .kind = RUNG_TRANSFER,
    .changes = "device arrays kept from run to run: copy, add and copy on one stream, no allocation timed",
    .tested = "double",
    .lanes = ALL_LANES,
    .run = run_pinned_reused,
};

static const struct rung streams2 = {
    .name = "streams2",
    .kind = RUNG_TRANSFER,
    .changes = "chunks of 16 MiB on two streams in turn: both directions at once; allocates inside the timed part",
    .tested = "double",
    .lanes = ALL_LANES,
    .run = run_streams2,
};

static const struct rung tuned_transfer = {
    .name = "tuned_transfer",
    .kind = RUNG_TRANSFER,
    .changes = "what add(device=\"cuda\") does: tapered chunks, kept streams; ordinary memory through a pinned ring",
    .tested = "double",
    .lanes = ALL_LANES,
    .run = run_tuned_transfer,
};

const struct rung *const transfer_rungs[] = {&pageable, &pinned, &pinned_reused, &streams2, &tuned_transfer, NULL};
