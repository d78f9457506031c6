#include "block.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "memory.h"
#include "runtime.h"
#include "stream.h"

struct device_block {
    atomic_size_t holders;
    void *memory;
    size_t bytes;
    void *stream;
    int device;
};

struct device_block *
device_block_make(int device, void *stream, size_t bytes, struct status *status)
{
    struct device_block *block = malloc(sizeof *block);
    if (!block) {
        status_set(status, STATUS_MEMORY, "there is no memory for an array's %zu bytes", sizeof *block);
        return NULL;
    }
    block->bytes = bytes;
    block->stream = stream;
    block->device = device;
    atomic_init(&block->holders, 1);
    if (device_allocate(device, stream, bytes, &block->memory, status) == 0)
        return block;
    free(block);
    return NULL;
}

void *
device_block_memory(const struct device_block *block)
{
    return block->memory;
}

void
device_block_hold(struct device_block *block)
{
    atomic_fetch_add_explicit(&block->holders, 1, memory_order_relaxed);
}

void
device_block_drop(struct device_block *block)
{
    if (!block || atomic_fetch_sub_explicit(&block->holders, 1, memory_order_acq_rel) > 1)
        return;
    device_release(block->device, block->stream, block->memory, block->bytes);
    free(block);
}

void
device_block_drop_after(struct device_block *block, void *stream)
{
    if (block->memory && runtime_cuda_usable())
        stream_join_if_free(block->device, stream, block->stream);
    device_block_drop(block);
}
