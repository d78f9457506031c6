/* A block of device memory with several holders: an array, its views, and what other libraries were given of it. */
#ifndef VECADD_GPU_BUFFER_H
#define VECADD_GPU_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct device_buffer;

/* A block held once, to be used in the order of `stream`. NULL with *status set. */
struct device_buffer *device_buffer_make(int device, void *stream, size_t bytes, struct status *status);

/* The same in a block that was dropped before, without a CUDA call or a wait; NULL where there is none. */
struct device_buffer *device_buffer_reuse(int device, void *stream, size_t bytes);

void *device_buffer_memory(const struct device_buffer *block); /* NULL where it has 0 bytes */

void device_buffer_hold(struct device_buffer *block);

/* The last holder gives the memory back in the order of the block's stream, once that may be used: a stream that
 * captures may not. Takes NULL. From any thread, in a forked child and at exit too. May wait, so the caller holds
 * neither a lock nor the GIL. */
void device_buffer_drop(struct device_buffer *block);

/* The same where it takes neither a CUDA call nor a wait, so that it may be done under a lock; else false, and the
 * block is still to be dropped. */
bool device_buffer_drop_at_once(struct device_buffer *block);

/* Gives what is kept for device_buffer_reuse back to the pools. */
void device_buffers_release(void);

/* What is needed to drop a block for a holder who has used the memory on another stream than the block's own: the block
 * is given back after what that stream holds then. It begins memory from malloc, which is freed when it is done. */
struct device_drop {
    struct device_drop *next;
    struct device_buffer *block;
    void *stream;
};

/* As device_buffer_drop. */
void device_buffer_drop_after(struct device_drop *drop);

/* The same without a CUDA call or a wait, for callers who may hold a lock or the GIL: what needs one is left to
 * device_buffers_settle. Returns whether nothing is left to it. */
bool device_buffer_drop_later(struct device_drop *drop);

/* Whether there is anything for device_buffers_settle, which does what could not be done before. May wait. */
bool device_buffers_wait(void);
void device_buffers_settle(void);

#endif
