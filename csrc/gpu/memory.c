#include "gpu/memory.h"

#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/runtime.h"
#include "gpu/capture_mode.h"
#include "gpu/device.h"
#include "gpu/state.h"
#include "gpu/stream.h"

/* What callers hold now. */
struct held {
    atomic_size_t bytes, blocks;
};

static struct held device_held, pinned_held;

static void
held_add(struct held *held, size_t bytes)
{
    atomic_fetch_add(&held->bytes, bytes);
    atomic_fetch_add(&held->blocks, 1);
}

static void
held_remove(struct held *held, size_t bytes)
{
    atomic_fetch_sub(&held->bytes, bytes);
    atomic_fetch_sub(&held->blocks, 1);
}

void
device_held_add(size_t bytes)
{
    held_add(&device_held, bytes);
}

void
device_held_remove(size_t bytes)
{
    held_remove(&device_held, bytes);
}

struct memory_counts
memory_counts(void)
{
    return (struct memory_counts){
        .device_bytes = atomic_load(&device_held.bytes),
        .device_blocks = atomic_load(&device_held.blocks),
        .pinned_bytes = atomic_load(&pinned_held.bytes),
        .pinned_blocks = atomic_load(&pinned_held.blocks),
    };
}

int
pool_allocate(const struct device_scope *scope, cudaStream_t stream, size_t bytes, void **memory, struct status *status)
{
    const cudaMemPool_t pool = scope->state->pool;
    const enum cudaStreamCaptureMode before = capture_mode_relax();
    cudaError_t error = cudaMallocFromPoolAsync(memory, bytes, pool, stream);
    if (error == cudaErrorMemoryAllocation) {
        if (!stream_is_busy(scope->device, stream)) { /* a wait for a busy stream would end a capture */
            cudaStreamSynchronize(stream);            /* returns what was released on it to the pool */
            cudaMemPoolTrimTo(pool, 0);
            error = cudaMallocFromPoolAsync(memory, bytes, pool, stream);
        }
        cudaGetLastError();
    }
    capture_mode_restore(before);
    if (error == cudaSuccess)
        return 0;
    device_status(status, error, "cudaMallocFromPoolAsync");
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
    cudaError_t error = cudaFreeAsync(memory, stream);
    if (error == cudaErrorInvalidResourceHandle || error == cudaErrorContextIsDestroyed)
        cudaFreeAsync(memory, cudaStreamLegacy);
    if (error != cudaSuccess)
        cudaGetLastError();
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

    void *made = NULL;
    int result = pool_allocate(&scope, stream, bytes, &made, status);
    if (result == 0) {
        held_add(&device_held, bytes);
        *memory = made;
    }
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
    if (device_enter(&scope, -1, status) < 0)
        return -1;

    void *made = NULL;
    const enum cudaStreamCaptureMode before = capture_mode_relax();
    cudaError_t error = cudaHostAlloc(&made, bytes ? bytes : 1, cudaHostAllocPortable | cudaHostAllocMapped);
    capture_mode_restore(before);
    if (error == cudaSuccess) {
        memset(made, 0, bytes);
        held_add(&pinned_held, bytes);
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
    if (!memory || !runtime_cuda_usable())
        return;
    held_remove(&pinned_held, bytes);
    if (!device_enter_to_release(&scope, -1))
        return;
    const enum cudaStreamCaptureMode before = capture_mode_relax();
    if (cudaFreeHost(memory) != cudaSuccess)
        cudaGetLastError();
    capture_mode_restore(before);
    device_leave(&scope);
}

/* Leaves the device; with `wait`, once the work that `call` queued is done. */
static int
finish(const struct device_scope *scope, cudaStream_t stream, cudaError_t error, const char *call, bool wait,
       struct status *status)
{
    if (error == cudaSuccess && wait) {
        call = "cudaStreamSynchronize";
        error = stream_wait(stream);
    }
    if (error != cudaSuccess)
        device_status(status, error, call);
    device_leave(scope);
    return error == cudaSuccess ? 0 : -1;
}

static int
copy(int device, cudaStream_t stream, void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind,
     bool wait, struct status *status)
{
    if (bytes == 0)
        return 0;
    struct device_scope scope;
    if (device_enter(&scope, device, status) < 0)
        return -1;
    const cudaError_t error = cudaMemcpyAsync(target, source, bytes, kind, stream);
    return finish(&scope, stream, error, "cudaMemcpyAsync", wait, status);
}

int
device_copy_in(int device, void *stream, void *target, const void *source, size_t bytes, struct status *status)
{
    return copy(device, stream, target, source, bytes, cudaMemcpyHostToDevice, true, status);
}

int
device_copy_out(int device, void *stream, void *target, const void *source, size_t bytes, struct status *status)
{
    return copy(device, stream, target, source, bytes, cudaMemcpyDeviceToHost, true, status);
}

int
device_copy(int device, void *stream, void *target, const void *source, size_t bytes, struct status *status)
{
    return copy(device, stream, target, source, bytes, cudaMemcpyDeviceToDevice, false, status);
}

int
device_fill(int device, void *stream, void *target, int byte, size_t bytes, struct status *status)
{
    if (bytes == 0)
        return 0;
    struct device_scope scope;
    if (device_enter(&scope, device, status) < 0)
        return -1;
    const cudaError_t error = cudaMemsetAsync(target, byte, bytes, stream);
    return finish(&scope, stream, error, "cudaMemsetAsync", true, status);
}
