/* Device memory from a private stream-ordered pool, pinned host memory, and copies between the two. */
#ifndef VECADD_GPU_MEMORY_H
#define VECADD_GPU_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* Memory for work queued on `stream` after this call. 0 bytes gives NULL. Out of memory, it trims the pool and tries
 * again before it fails with STATUS_MEMORY. */
int device_allocate(int device, void *stream, size_t bytes, void **memory, struct status *status);

/* Gives memory of device_allocate back once everything queued on `stream` so far is done. Waits while the stream's
 * queue is full, so the caller has no lock. For destructors: never fails, makes no CUDA call in a forked child or
 * after the runtime has shut down, and takes NULL. */
void device_free(int device, void *stream, void *memory);

/* Memory that queued work may still use, though no stream can be ordered after that work: it is on a non-blocking
 * stream whose handle may be dead (stream.h). The memory is given back after a wait for the whole device, which takes
 * place in device_pools_trim, when an allocation finds no room, and in the first allocation after more than an
 * eighth of the device's memory, which is what the pool keeps, is parked. */
struct parked_memory {
    struct parked_memory *next;
    void *holder; /* malloc'd, perhaps around this struct: freed with the memory */
    void *memory;
    size_t bytes;
};

/* False where the device cannot be entered. Makes no CUDA call that waits, unless the device was never used before. */
bool device_park(int device, struct parked_memory *parked);

/* Waits for all that is queued on the device, on any stream, and ends no capture. False where that fails. */
bool device_wait(int device);

/* Count the bytes in use by callers. device_allocate adds its bytes itself; a caller removes what it frees or keeps for
 * later, and adds what it uses again. */
void device_in_use_add(size_t bytes);
void device_in_use_remove(size_t bytes);

/* Page-locked host memory, usable from every device; zero-filled. 0 bytes gives a valid pointer too. */
int pinned_allocate(size_t bytes, void **memory, struct status *status);
void pinned_release(void *memory, size_t bytes);

/* Copies from host memory, to host memory, or within one device, on `stream`. Returns when the bytes have arrived, or,
 * of COPY_IN, when the host memory may be changed again; both wait, so the caller has no lock. COPY_WITHIN queues the
 * copy, and waits only while the stream's queue is full. */
enum device_copy_way { COPY_IN, COPY_OUT, COPY_WITHIN };
int device_copy(int device, void *stream, enum device_copy_way way, void *target, const void *source, size_t bytes,
                struct status *status);

/* Fills memory of one device; waits as a copy does. */
int device_fill(int device, void *stream, void *target, int byte, size_t bytes, struct status *status);

/* Gives parked memory back, after a wait for its device, and the unused memory of the devices' pools to the system.
 * Never fails. Skips devices that this process has
 * not used, and every device in a forked child. */
void device_pools_trim(void);

struct memory_counts {
    size_t device_bytes, device_blocks; /* of DeviceArrays now */
    size_t pinned_bytes, pinned_blocks; /* of empty_pinned arrays now */
};
struct memory_counts memory_counts(void);

#endif
