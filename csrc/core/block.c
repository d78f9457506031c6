#include "block.h"

#include <pthread.h>
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
    bool captured;             /* allocated by a graph */
    struct device_block *next; /* of `waiting` */
};

/* Blocks that were dropped while their stream captured: in a capture only that can be freed which was allocated in it.
 * They go back once it has ended, when the next block is made. */
static struct {
    pthread_mutex_t lock;
    struct device_block *first;
    atomic_size_t count;
} waiting = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool
captures_now(void *stream)
{
    bool captures;
    struct status ignored;
    return stream_captures(stream, &captures, &ignored) == 0 && captures;
}

/* Of a block that nobody holds any more. */
static void
give_back(struct device_block *block)
{
    if (block->memory && !block->captured && runtime_cuda_usable() && captures_now(block->stream)) {
        device_held_remove(block->bytes);
        pthread_mutex_lock(&waiting.lock);
        block->next = waiting.first;
        waiting.first = block;
        atomic_fetch_add(&waiting.count, 1);
        pthread_mutex_unlock(&waiting.lock);
        return;
    }
    device_release(block->device, block->stream, block->memory, block->bytes);
    free(block);
}

static void
give_back_waiting(void)
{
    if (atomic_load_explicit(&waiting.count, memory_order_relaxed) == 0 || !runtime_cuda_usable())
        return;
    pthread_mutex_lock(&waiting.lock);
    struct device_block *block = waiting.first;
    waiting.first = NULL;
    atomic_store(&waiting.count, 0);
    pthread_mutex_unlock(&waiting.lock);
    while (block) {
        struct device_block *const next = block->next;
        device_held_add(block->bytes);
        give_back(block);
        block = next;
    }
}

/* Small blocks that nobody holds, for the next array of their size: cudaMallocFromPoolAsync and cudaFreeAsync take 0.25
 * and 0.35 us, a quarter of what a small addition costs its caller. Only of the legacy default stream, which is never
 * destroyed: a handle of another one may be a new stream's by now, that orders nothing after what the old one held. */
enum { KEPT_BLOCKS = 16, KEPT_BYTES = 64 << 10 };
static struct {
    atomic_flag busy; /* nobody waits for it: who finds it set goes to the pool */
    struct device_block *block[KEPT_BLOCKS];
} kept = {.busy = ATOMIC_FLAG_INIT};

static bool
kept_open(void *stream, size_t bytes)
{
    return stream == NULL && bytes > 0 && bytes <= KEPT_BYTES && runtime_cuda_usable() &&
           !atomic_flag_test_and_set_explicit(&kept.busy, memory_order_acquire);
}

static void
kept_close(void)
{
    atomic_flag_clear_explicit(&kept.busy, memory_order_release);
}

struct device_block *
device_block_reuse(int device, void *stream, size_t bytes)
{
    struct device_block *found = NULL;
    if (!kept_open(stream, bytes))
        return NULL;
    for (int i = 0; i < KEPT_BLOCKS && !found; i++)
        if (kept.block[i] && kept.block[i]->bytes == bytes && kept.block[i]->device == device) {
            found = kept.block[i];
            kept.block[i] = NULL;
        }
    kept_close();
    if (found) {
        atomic_store_explicit(&found->holders, 1, memory_order_relaxed);
        device_held_add(bytes);
    }
    return found;
}

/* Takes a block that nobody holds; false where there is no place for it. */
static bool
keep(struct device_block *block)
{
    bool taken = false;
    if (!kept_open(block->stream, block->bytes))
        return false;
    for (int i = 0; i < KEPT_BLOCKS && !taken; i++)
        if (!kept.block[i]) {
            kept.block[i] = block;
            taken = true;
        }
    kept_close();
    return taken;
}

void
device_blocks_release(void)
{
    give_back_waiting();
    for (int i = 0; i < KEPT_BLOCKS; i++) {
        if (!kept_open(NULL, 1))
            return;
        struct device_block *block = kept.block[i];
        kept.block[i] = NULL;
        kept_close();
        if (!block)
            continue;
        device_held_add(block->bytes);
        device_release(block->device, block->stream, block->memory, block->bytes);
        free(block);
    }
}

struct device_block *
device_block_make(int device, void *stream, size_t bytes, struct status *status)
{
    struct device_block *block = malloc(sizeof *block);
    if (!block) {
        status_set(status, STATUS_MEMORY, "there is no memory for an array's %zu bytes", sizeof *block);
        return NULL;
    }
    give_back_waiting();
    block->bytes = bytes;
    block->stream = stream;
    block->device = device;
    block->captured = captures_now(stream);
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

bool
device_block_drop_at_once(struct device_block *block)
{
    if (!block)
        return true;
    /* One holder: nobody else can become one meanwhile. */
    if (atomic_load_explicit(&block->holders, memory_order_acquire) > 1)
        return false;
    const size_t bytes = block->bytes; /* once kept, the block is another thread's */
    if (!keep(block))
        return false;
    device_held_remove(bytes);
    return true;
}

void
device_block_drop(struct device_block *block)
{
    if (!block || atomic_fetch_sub_explicit(&block->holders, 1, memory_order_acq_rel) > 1)
        return;
    give_back(block);
}

void
device_block_drop_after(struct device_block *block, void *stream)
{
    if (block->memory && runtime_cuda_usable())
        stream_join_if_free(block->device, stream, block->stream);
    device_block_drop(block);
}
