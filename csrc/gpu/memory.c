#include "gpu/memory.h"

#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/runtime.h"
#include "gpu/device.h"
#include "gpu/state.h"
#include "gpu/stream.h"

/* What callers have now. */
struct in_use {
    atomic_size_t bytes, blocks;
};

static struct in_use device_in_use, pinned_in_use;

static void
count(struct in_use *use, size_t bytes, int blocks)
{
    atomic_fetch_add(&use->bytes, blocks < 0 ? -bytes : bytes);
    atomic_fetch_add(&use->blocks, (size_t)blocks);
}

void
device_in_use_add(size_t bytes)
{
    count(&device_in_use, bytes, 1);
}

void
device_in_use_remove(size_t bytes)
{
    count(&device_in_use, bytes, -1);
}

struct memory_counts
memory_counts(void)
{
    return (struct memory_counts){
        .device_bytes = atomic_load(&device_in_use.bytes),
        .device_blocks = atomic_load(&device_in_use.blocks),
        .pinned_bytes = atomic_load(&pinned_in_use.bytes),
        .pinned_blocks = atomic_load(&pinned_in_use.blocks),
    };
}

/* On the current device, in relaxed mode. cudaFree waits for every stream, those that were destroyed with work pending
 * too, and ends no capture (tests/double/conformance/memory.c and captures.c). cudaDeviceSynchronize and an event of
 * the context, cuCtxRecordEvent, end all captures. */
static bool
wait_for_device(void)
{
    void *memory;
    cudaError_t error = cudaMalloc(&memory, 1);
    if (error == cudaSuccess)
        error = cudaFree(memory);
    device_ignore(error);
    return error == cudaSuccess || device_is_lost(error);
}

bool
device_wait(int device)
{
    struct device_scope scope;
    if (!runtime_cuda_usable() || !device_enter_to_release(&scope, device))
        return false;
    const enum cudaStreamCaptureMode before = capture_mode_relax();
    const bool waited = wait_for_device();
    capture_mode_restore(before);
    device_leave(&scope);
    return waited;
}

static void
park(struct device_state *state, struct parked_memory *parked)
{
    atomic_fetch_add(&state->parked_bytes, parked->bytes);
    parked->next = atomic_load_explicit(&state->parked, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&state->parked, &parked->next, parked))
        ;
}

bool
device_park(int device, struct parked_memory *parked)
{
    struct device_scope scope;
    if (!device_enter_to_release(&scope, device))
        return false;
    park(scope.state, parked);
    device_leave(&scope);
    return true;
}

/* Gives all that is parked on the current device back, after a wait for it, in relaxed mode. Where that fails it stays
 * parked. */
static void
give_parked_back(const struct device_scope *scope)
{
    struct device_state *const state = scope->state;
    struct parked_memory *next, *taken = atomic_exchange(&state->parked, NULL);
    cudaStream_t own;
    if (!taken)
        return;
    const bool done = wait_for_device() && stream_own(scope, &own) == cudaSuccess;
    for (struct parked_memory *parked = taken; parked; parked = next) {
        next = parked->next;
        atomic_fetch_sub(&state->parked_bytes, parked->bytes);
        if (done) {
            pool_release(own, parked->memory);
            free(parked->holder);
        } else
            park(state, parked);
    }
    if (done)
        stream_wait(own); /* so that the pool has it at once */
    else
        cudaGetLastError();
}

void
device_pools_trim(void)
{
    struct device_scope scope;
    for (int device = 0; runtime_cuda_usable() && device < device_count_if_known(); device++) {
        const struct device_state *state = device_state_if_started(device);
        if (!state || !state->pool || !device_enter_to_release(&scope, device))
            continue;
        const enum cudaStreamCaptureMode before = capture_mode_relax();
        give_parked_back(&scope);
        device_ignore(cudaMemPoolTrimTo(state->pool, 0));
        capture_mode_restore(before);
        device_leave(&scope);
    }
}

/* Whether more is parked than the pool keeps of what is free. */
static bool
parked_too_much(struct device_state *state)
{
    uint64_t kept = UINT64_MAX;
    const size_t parked = atomic_load_explicit(&state->parked_bytes, memory_order_relaxed);
    if (parked)
        device_ignore(cudaMemPoolGetAttribute(state->pool, cudaMemPoolAttrReleaseThreshold, &kept));
    return parked > kept;
}

int
pool_allocate(const struct device_scope *scope, cudaStream_t stream, size_t bytes, void **memory, struct status *status)
{
    const cudaMemPool_t pool = scope->state->pool;
    if (!pool)
        return status_set(status, STATUS_CUDA,
                          "device %d has no memory pools, as some virtual GPUs, so that vecadd can allocate nothing on "
                          "it: pass contiguous arrays of another library, and one of them as out",
                          scope->device);
    const enum cudaStreamCaptureMode before = capture_mode_relax();
    if (parked_too_much(scope->state) && !stream_is_busy(scope->device, stream))
        give_parked_back(scope);
    cudaError_t error = cudaMallocFromPoolAsync(memory, bytes, pool, stream);
    if (error == cudaErrorMemoryAllocation) {
        if (!stream_is_busy(scope->device, stream)) { /* a wait for a busy stream would end a capture */
            give_parked_back(scope);
            cudaStreamSynchronize(stream); /* returns what was released on it to the pool */
            cudaMemPoolTrimTo(pool, 0);
            error = cudaMallocFromPoolAsync(memory, bytes, pool, stream);
        }
        cudaGetLastError();
    }
    capture_mode_restore(before);
    if (cuda_result(status, error, "cudaMallocFromPoolAsync") == 0)
        return 0;
    if (status->code == STATUS_MEMORY)
        snprintf(status->text, sizeof status->text,
                 "device %d has no room for %zu bytes; free arrays or add smaller ones", scope->device, bytes);
    return -1;
}

void
pool_release(cudaStream_t stream, void *memory)
{
    if (!memory)
        return;
    const enum cudaStreamCaptureMode before = capture_mode_relax();
    device_ignore(cudaFreeAsync(memory, stream));
    capture_mode_restore(before);
}

int
device_allocate(int device, void *stream, size_t bytes, void **memory, struct status *status)
{
    *memory = NULL;
    if (bytes == 0)
        return 0;
    struct device_scope scope;
    if (device_enter(&scope, device, status) < 0)
        return -1;

    const int result = pool_allocate(&scope, stream, bytes, memory, status);
    if (result == 0)
        count(&device_in_use, bytes, 1);
    device_leave(&scope);
    return result;
}

void
device_free(int device, void *stream, void *memory)
{
    struct device_scope scope;
    if (!memory || !runtime_cuda_usable() || !device_enter_to_release(&scope, device))
        return;
    pool_release(stream, memory);
    device_leave(&scope);
}

int
pinned_allocate(size_t bytes, void **memory, struct status *status)
{
    *memory = NULL;
    struct device_scope scope;
    if (device_enter_any(&scope, status) < 0)
        return -1;

    void *made = NULL;
    cudaError_t error = cudaHostAlloc(&made, bytes ? bytes : 1, cudaHostAllocPortable | cudaHostAllocMapped);
    if (error == cudaSuccess) {
        memset(made, 0, bytes);
        count(&pinned_in_use, bytes, 1);
        *memory = made;
    } else {
        device_status(status, error, "cudaHostAlloc");
        if (status->code == STATUS_MEMORY)
            snprintf(status->text, sizeof status->text,
                     "there is no room for %zu bytes of page-locked memory: use ordinary arrays or smaller ones",
                     bytes);
    }
    device_leave(&scope);
    return error == cudaSuccess ? 0 : -1;
}

void
pinned_release(void *memory, size_t bytes)
{
    struct device_scope scope;
    struct status ignored;
    if (!memory || !runtime_cuda_usable())
        return;
    count(&pinned_in_use, bytes, -1);
    if (device_enter_any(&scope, &ignored) < 0 && device_enter_any(&scope, &ignored) < 0)
        return;
    device_ignore(cudaFreeHost(memory));
    device_leave(&scope);
}

/* Leaves the device; with `wait`, once the work that was queued is done. */
static int
finish(const struct device_scope *scope, cudaStream_t stream, int result, bool wait, struct status *status)
{
    if (result == 0 && wait)
        result = cuda_result(status, stream_wait(stream), "cudaStreamSynchronize");
    device_leave(scope);
    return result;
}

int
device_copy(int device, void *stream, enum device_copy_way way, void *target, const void *source, size_t bytes,
            struct status *status)
{
    static const enum cudaMemcpyKind kinds[] = {[COPY_IN] = cudaMemcpyHostToDevice,
                                                [COPY_OUT] = cudaMemcpyDeviceToHost,
                                                [COPY_WITHIN] = cudaMemcpyDeviceToDevice};
    struct device_scope scope;
    if (bytes == 0)
        return 0;
    if (device_enter(&scope, device, status) < 0)
        return -1;
    const int result = CUDA_CALL(status, cudaMemcpyAsync, target, source, bytes, kinds[way], stream);
    return finish(&scope, stream, result, way != COPY_WITHIN, status);
}

int
device_fill(int device, void *stream, void *target, int byte, size_t bytes, struct status *status)
{
    struct device_scope scope;
    if (bytes == 0)
        return 0;
    if (device_enter(&scope, device, status) < 0)
        return -1;
    return finish(&scope, stream, CUDA_CALL(status, cudaMemsetAsync, target, byte, bytes, stream), true, status);
}
