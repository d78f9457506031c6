#include "memory.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <search.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "device_state.h"
#include "runtime.h"

/* The blocks that callers hold and how large each is: what a release takes off the counts. */
struct held {
    pthread_mutex_t lock;
    void *tree; /* of struct block, search.h */
    atomic_size_t bytes, blocks;
};

struct block {
    uintptr_t address;
    size_t bytes;
};

static struct held device_held = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct held pinned_held = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int
block_compare(const void *left, const void *right)
{
    const struct block *l = left, *r = right;
    return (l->address > r->address) - (l->address < r->address);
}

static int
held_add(struct held *held, const void *memory, size_t bytes, struct status *status)
{
    struct block *block = malloc(sizeof *block);
    if (block) {
        *block = (struct block){(uintptr_t)memory, bytes};
        pthread_mutex_lock(&held->lock);
        void *node = tsearch(block, &held->tree, block_compare);
        pthread_mutex_unlock(&held->lock);
        if (node) {
            atomic_fetch_add(&held->bytes, bytes);
            atomic_fetch_add(&held->blocks, 1);
            return 0;
        }
        free(block);
    }
    return status_set(status, STATUS_MEMORY, "there is no memory to keep account of %zu bytes", bytes);
}

static void
held_remove(struct held *held, const void *memory)
{
    const struct block key = {.address = (uintptr_t)memory};
    pthread_mutex_lock(&held->lock);
    struct block **node = tfind(&key, &held->tree, block_compare);
    struct block *block = node ? *node : NULL;
    if (block)
        tdelete(block, &held->tree, block_compare);
    pthread_mutex_unlock(&held->lock);
    if (!block)
        return;
    atomic_fetch_sub(&held->bytes, block->bytes);
    atomic_fetch_sub(&held->blocks, 1);
    free(block);
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
    cudaError_t error = cudaMallocFromPoolAsync(memory, bytes, pool, stream);
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        cudaStreamSynchronize(stream); /* what was released on it is only now back in the pool */
        cudaMemPoolTrimTo(pool, 0);
        error = cudaMallocFromPoolAsync(memory, bytes, pool, stream);
    }
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
    cudaError_t error = cudaFreeAsync(memory, stream);
    if (error == cudaSuccess)
        return;
    if (error == cudaErrorInvalidResourceHandle || error == cudaErrorContextIsDestroyed)
        cudaFreeAsync(memory, cudaStreamLegacy);
    cudaGetLastError();
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

    int result = -1;
    void *made = NULL;
    if (pool_allocate(&scope, stream, bytes, &made, status) < 0)
        goto done;
    if (held_add(&device_held, made, bytes, status) < 0) {
        pool_release(stream, made);
        goto done;
    }
    *memory = made;
    result = 0;
done:
    device_leave(&scope);
    return result;
}

void
device_release(int device, void *stream, void *memory)
{
    struct device_scope scope;
    struct status ignored;
    if (!memory || !runtime_cuda_usable())
        return;
    held_remove(&device_held, memory);
    if (device_enter(&scope, device, &ignored) < 0)
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

    int result = -1;
    void *made = NULL;
    cudaError_t error = cudaHostAlloc(&made, bytes ? bytes : 1, cudaHostAllocPortable | cudaHostAllocMapped);
    if (error != cudaSuccess) {
        device_status(status, error, "cudaHostAlloc");
        if (status->code == STATUS_MEMORY)
            snprintf(status->text, sizeof status->text,
                     "there is no room for %zu bytes of page-locked memory: use ordinary arrays or smaller ones",
                     bytes);
        goto done;
    }
    if (held_add(&pinned_held, made, bytes, status) < 0) {
        cudaFreeHost(made);
        goto done;
    }
    memset(made, 0, bytes);
    *memory = made;
    result = 0;
done:
    device_leave(&scope);
    return result;
}

void
pinned_release(void *memory)
{
    struct device_scope scope;
    struct status ignored;
    if (!memory || !runtime_cuda_usable())
        return;
    held_remove(&pinned_held, memory);
    if (device_enter(&scope, -1, &ignored) < 0)
        return;
    if (cudaFreeHost(memory) != cudaSuccess)
        cudaGetLastError();
    device_leave(&scope);
}

static int
copy(int device, cudaStream_t stream, void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind,
     struct status *status)
{
    if (bytes == 0)
        return 0;
    struct device_scope scope;
    if (device_enter(&scope, device, status) < 0)
        return -1;
    const char *call = "cudaMemcpyAsync";
    cudaError_t error = cudaMemcpyAsync(target, source, bytes, kind, stream);
    if (error == cudaSuccess) {
        call = "cudaStreamSynchronize";
        error = stream_wait(stream);
    }
    if (error != cudaSuccess)
        device_status(status, error, call);
    device_leave(&scope);
    return error == cudaSuccess ? 0 : -1;
}

int
device_copy_in(int device, void *stream, void *target, const void *source, size_t bytes, struct status *status)
{
    return copy(device, stream, target, source, bytes, cudaMemcpyHostToDevice, status);
}

int
device_copy_out(int device, void *stream, void *target, const void *source, size_t bytes, struct status *status)
{
    return copy(device, stream, target, source, bytes, cudaMemcpyDeviceToHost, status);
}

int
device_copy(int device, void *stream, void *target, const void *source, size_t bytes, struct status *status)
{
    return copy(device, stream, target, source, bytes, cudaMemcpyDeviceToDevice, status);
}

int
device_fill(int device, void *stream, void *target, int byte, size_t bytes, struct status *status)
{
    if (bytes == 0)
        return 0;
    struct device_scope scope;
    if (device_enter(&scope, device, status) < 0)
        return -1;
    const char *call = "cudaMemsetAsync";
    cudaError_t error = cudaMemsetAsync(target, byte, bytes, stream);
    if (error == cudaSuccess) {
        call = "cudaStreamSynchronize";
        error = stream_wait(stream);
    }
    if (error != cudaSuccess)
        device_status(status, error, call);
    device_leave(&scope);
    return error == cudaSuccess ? 0 : -1;
}
