/* A block of device memory with several holders: an array, its views, and the exports of it to other libraries. */
#ifndef VECADD_GPU_BUFFER_H
#define VECADD_GPU_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/kept_stream.h"
#include "base/status.h"

struct device_buffer;
struct stream_home;

/* A new block with one holder. NULL with *status set. */
struct device_buffer *device_buffer_make(int device, const struct stream_home *home, size_t bytes,
                                         struct status *status);

/* device_buffer_make with a kept block, without a CUDA call or a wait; NULL where no kept block fits. */
struct device_buffer *device_buffer_reuse(int device, void *stream, size_t bytes);

void *device_buffer_memory(const struct device_buffer *block); /* NULL where it has 0 bytes */

/* The stream in whose order vecadd uses the block, and what keeps it (NULL: nothing has to). */
void *device_buffer_home(const struct device_buffer *block);
struct kept_stream *device_buffer_home_kept(const struct device_buffer *block);

/* Marks a block as used by work that no stream can be ordered after (STREAM_NONE): its memory is parked before it is
 * given back (memory.h). */
void device_buffer_loosen(struct device_buffer *block);

/* Moves the block to the legacy default stream: that waits for what is queued on the block's own stream, and vecadd
 * uses the block in its order from now on. For consumers that work there and do not say when they are done: the memory
 * is given back after what is queued on both streams then. Waits while a queue is full. Returns 0, or -1 with *status
 * set. */
int device_buffer_move(struct device_buffer *block, struct status *status);

void device_buffer_retain(struct device_buffer *block);

/* Removes a holder. The last one gives the memory back in the order of the block's stream, once that stream can be
 * used: not while it captures. Takes NULL. May be called from any thread, in a forked child and at exit. May wait, so
 * the caller has neither a lock nor the GIL. */
void device_buffer_drop(struct device_buffer *block);

/* device_buffer_drop where it needs neither a CUDA call nor a wait, so that it may be called under a lock. Else returns
 * false, and the caller still has to drop the block. */
bool device_buffer_drop_at_once(struct device_buffer *block);

/* Gives the blocks kept for device_buffer_reuse back to the pools. */
void device_buffers_release(void);

/* The drop of a block by a holder that used the memory on another stream than the block's own: the block is given back
 * after the work on `stream` at the drop. It is the first member of a malloc'd struct, which is freed
 * afterwards. */
struct device_drop {
    struct device_drop *next;
    struct device_buffer *block;
    void *stream;
    struct kept_stream *kept; /* what keeps `stream`, used by the drop; NULL: nothing has to */
};

/* device_buffer_drop for such a holder. */
void device_buffer_drop_after(struct device_drop *drop);

/* device_buffer_drop_after without a CUDA call or a wait, for callers that may have a lock or the GIL. What needs
 * either is left to device_buffers_settle. Returns whether nothing was left to it. */
bool device_buffer_drop_later(struct device_drop *drop);

/* Whether drops were put off, and device_buffers_settle, which makes them. It may wait. */
bool device_buffers_wait(void);
void device_buffers_settle(void);

#endif
