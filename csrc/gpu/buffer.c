#include "gpu/buffer.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/runtime.h"
#include "gpu/memory.h"
#include "gpu/stream.h"

struct device_buffer {
    struct device_drop drop; /* of the block itself, on its stream; first, so that its address is the block's */
    atomic_size_t holders;
    void *memory;
    size_t bytes;
    int device;
    bool captured;     /* allocated in a graph's capture */
    atomic_bool moved; /* device_buffer_move */
    atomic_bool loose; /* device_buffer_loosen */
    struct parked_memory parked;
};

/* Drops that had to be put off: during a capture only memory allocated in that capture can be freed, and a deleter does
 * not know whether its caller has the GIL, under which no CUDA call may wait. The list has no lock, so that a deleter
 * never waits for a thread and a fork never finds it locked. */
static _Atomic(struct device_drop *) deferred;

static bool
is_moved(const struct device_buffer *block)
{
    return atomic_load_explicit(&block->moved, memory_order_acquire);
}

static void
defer_release(struct device_drop *drop)
{
    drop->next = atomic_load_explicit(&deferred, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&deferred, &drop->next, drop))
        ;
}

/* A graph's own memory, which is not from a pool, never is. */
static bool
must_be_parked(const struct device_buffer *block)
{
    return atomic_load(&block->loose) && block->memory && !block->captured && runtime_cuda_usable();
}

static bool
park(struct device_buffer *block)
{
    struct kept_stream *const kept = block->drop.kept;
    block->parked = (struct parked_memory){.holder = block, .memory = block->memory, .bytes = block->bytes};
    if (!device_park(block->device, &block->parked))
        return false;
    kept_stream_leave(kept); /* the block may be gone by now */
    return true;
}

/* Frees a block without holders, which the counts no longer include. False where its stream cannot be used now. */
static bool
free_block(struct device_buffer *block)
{
    if (must_be_parked(block))
        return park(block);
    if (block->memory && !block->captured && runtime_cuda_usable() && stream_is_busy(block->device, block->drop.stream))
        return false;
    if (atomic_load(&block->moved) && !stream_join_if_free(block->device, NULL, block->drop.stream))
        return false;
    device_free(block->device, block->drop.stream, block->memory);
    kept_stream_leave(block->drop.kept);
    free(block);
    return true;
}

/* Removes one holder; true if it was the last. */
static bool
remove_holder(struct device_buffer *block)
{
    if (atomic_fetch_sub_explicit(&block->holders, 1, memory_order_acq_rel) > 1)
        return false;
    if (block->memory && runtime_cuda_usable())
        device_in_use_remove(block->bytes);
    return true;
}

static bool
release_deferred(struct device_drop *drop)
{
    struct device_buffer *const block = drop->block;
    if ((void *)drop == (void *)block)
        return free_block(block);
    if (block->memory && !stream_join_if_free(block->device, drop->stream, block->drop.stream))
        return false;
    kept_stream_leave(drop->kept);
    free(drop);
    device_buffer_drop(block);
    return true;
}

bool
device_buffers_wait(void)
{
    return atomic_load_explicit(&deferred, memory_order_relaxed) != NULL;
}

void
device_buffers_settle(void)
{
    if (!device_buffers_wait() || !runtime_cuda_usable())
        return;
    for (struct device_drop *drop = atomic_exchange(&deferred, NULL), *next; drop; drop = next) {
        next = drop->next;
        if (!release_deferred(drop))
            defer_release(drop);
    }
}

/* Small blocks without holders, kept for the next array of their size: cudaMallocFromPoolAsync and cudaFreeAsync take
 * 0.25 and 0.35 us, a quarter of what a small addition costs its caller. Only blocks of the legacy default stream,
 * which is never destroyed: another handle may by now name a new stream, which is not ordered after the old one's
 * work. */
enum { KEPT_BLOCKS = 16, KEPT_BYTES = 64 << 10 };
static struct {
    atomic_flag busy; /* a thread that finds it set uses the pool and does not wait */
    struct device_buffer *block[KEPT_BLOCKS];
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

struct device_buffer *
device_buffer_reuse(int device, void *stream, size_t bytes)
{
    struct device_buffer *found = NULL;
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
        device_in_use_add(bytes);
    }
    return found;
}

/* Keeps a block that has no holders; false where every place is taken. */
static bool
keep_for_reuse(struct device_buffer *block)
{
    bool taken = false;
    if (atomic_load(&block->loose) || !kept_open(block->drop.stream, block->bytes))
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
device_buffers_release(void)
{
    device_buffers_settle();
    for (int i = 0; i < KEPT_BLOCKS; i++) {
        if (!kept_open(NULL, 1))
            return;
        struct device_buffer *block = kept.block[i];
        kept.block[i] = NULL;
        kept_close();
        if (!block)
            continue;
        if (!free_block(block))
            defer_release(&block->drop);
    }
}

static bool
captures_now(int device, void *stream)
{
    bool captures;
    struct status ignored;
    return stream_captures(device, stream, &captures, &ignored) == 0 && captures;
}

struct device_buffer *
device_buffer_make(int device, const struct stream_home *home, size_t bytes, struct status *status)
{
    struct device_buffer *block = malloc(sizeof *block);
    if (!block) {
        status_set(status, STATUS_MEMORY, "there is no memory for an array's %zu bytes", sizeof *block);
        return NULL;
    }
    device_buffers_settle();
    block->drop = (struct device_drop){.block = block, .stream = home->stream, .kept = home->kept};
    block->bytes = bytes;
    block->device = device;
    block->captured = captures_now(device, home->allocation);
    atomic_init(&block->holders, 1);
    atomic_init(&block->moved, false);
    atomic_init(&block->loose, home->loose);
    if (device_allocate(device, home->allocation, bytes, &block->memory, status) == 0) {
        kept_stream_use(home->kept);
        return block;
    }
    free(block);
    return NULL;
}

void *
device_buffer_memory(const struct device_buffer *block)
{
    return block->memory;
}

void *
device_buffer_home(const struct device_buffer *block)
{
    return is_moved(block) ? NULL : block->drop.stream;
}

struct kept_stream *
device_buffer_home_kept(const struct device_buffer *block)
{
    return is_moved(block) ? NULL : block->drop.kept;
}

void
device_buffer_loosen(struct device_buffer *block)
{
    atomic_store(&block->loose, true);
}

int
device_buffer_move(struct device_buffer *block, struct status *status)
{
    if (!block->memory || block->drop.stream == NULL || is_moved(block))
        return 0;
    if (stream_join(block->device, block->drop.stream, NULL, status) < 0)
        return -1;
    atomic_store(&block->moved, true);
    return 0;
}

void
device_buffer_retain(struct device_buffer *block)
{
    atomic_fetch_add_explicit(&block->holders, 1, memory_order_relaxed);
}

bool
device_buffer_drop_at_once(struct device_buffer *block)
{
    if (!block)
        return true;
    /* With one holder left, no other thread can become one meanwhile. */
    if (atomic_load_explicit(&block->holders, memory_order_acquire) > 1)
        return false;
    const size_t bytes = block->bytes; /* read now: once kept, the block may be another thread's */
    if (!keep_for_reuse(block))
        return false;
    device_in_use_remove(bytes);
    return true;
}

void
device_buffer_drop(struct device_buffer *block)
{
    if (block && remove_holder(block) && !free_block(block))
        defer_release(&block->drop);
}

void
device_buffer_drop_after(struct device_drop *drop)
{
    if (!runtime_cuda_usable() || !release_deferred(drop))
        defer_release(drop);
}

/* Removes one holder if there are others. */
static bool
leave_to_other_holders(struct device_buffer *block)
{
    size_t holders = atomic_load_explicit(&block->holders, memory_order_relaxed);
    while (holders > 1)
        if (atomic_compare_exchange_weak_explicit(&block->holders, &holders, holders - 1, memory_order_acq_rel,
                                                  memory_order_relaxed))
            return true;
    return false;
}

bool
device_buffer_drop_later(struct device_drop *drop)
{
    struct device_buffer *const block = drop->block;
    const bool ordered = !block->memory || drop->stream == block->drop.stream;
    if (ordered && (leave_to_other_holders(block) || device_buffer_drop_at_once(block))) {
        kept_stream_leave(drop->kept);
        free(drop);
        return true;
    }
    defer_release(drop);
    return false;
}
