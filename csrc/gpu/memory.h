/* Device memory from a private stream-ordered pool, pinned host memory, and copies between the two. */
#ifndef VECADD_GPU_MEMORY_H
#define VECADD_GPU_MEMORY_H

#include <stddef.h>

#include "base/status.h"

/* Memory that work queued on `stream` after this call may use. 0 bytes gives NULL. Out of memory: the pool is trimmed
 * and the allocation tried again before it fails with STATUS_MEMORY. */
int device_allocate(int device, void *stream, size_t bytes, void **memory, struct status *status);

/* Gives memory allocated so back once everything queued on `stream` so far is done; waits while the stream's queue is
 * full, so the caller holds no lock. For destructors: never fails, makes no CUDA call in a forked child or after the
 * runtime has shut down, and takes NULL. A stream that is gone by now is replaced by the legacy default stream. */
void device_free(int device, void *stream, void *memory);

/* What callers hold: device_allocate adds what it gives. A caller removes what it frees or keeps for later, and adds
 * what it takes up again. */
void device_held_add(size_t bytes);
void device_held_remove(size_t bytes);

/* Page-locked host memory, usable from every device; zero-filled. 0 bytes gives a valid pointer too. */
int pinned_allocate(size_t bytes, void **memory, struct status *status);
void pinned_release(void *memory, size_t bytes);

/* Copies between host and device memory on `stream`; copy_out returns when the bytes have arrived, copy_in when the
 * host memory may be changed again. Both wait, so the caller holds no lock. */
int device_copy_in(int device, void *stream, void *target, const void *source, size_t bytes, struct status *status);
int device_copy_out(int device, void *stream, void *target, const void *source, size_t bytes, struct status *status);

/* Within the memory of one device; returns when it is done, as the copies above. */
int device_fill(int device, void *stream, void *target, int byte, size_t bytes, struct status *status);

/* The same, queued: it waits only while the stream's queue is full. */
int device_copy(int device, void *stream, void *target, const void *source, size_t bytes, struct status *status);

/* Gives what the devices' pools keep and nobody holds back to the system. Never fails; a device that this process has
 * not used, and every device in a forked child, is left alone. */
void device_pools_trim(void);

struct memory_counts {
    size_t device_bytes, device_blocks; /* held by DeviceArrays now */
    size_t pinned_bytes, pinned_blocks; /* held by empty_pinned arrays now */
};
struct memory_counts memory_counts(void);

#endif
