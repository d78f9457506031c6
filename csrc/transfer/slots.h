/* What all transfers through the GPU share: slots that chunks pass through, and the state of one transfer. For
 * transfer.c, zero_copy.c and hybrid.c. */
#ifndef VECADD_TRANSFER_SLOTS_H
#define VECADD_TRANSFER_SLOTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <cuda_runtime_api.h>

#include "base/plan.h"
#include "gpu/state.h"
#include "transfer/options.h"
#include "transfer/ring.h"

/* Bytes of each operand that fit a slot's page-locked memory. 16 threads through slots of 1 MiB take 17.6 ms for 1e8
 * float32, of 512 KiB 19.6, of 4 MiB 26, because the slots no longer stay in the cache. */
enum { SLOT_HOST_BYTES = 1 << 20 };

/* The memory of one chunk in flight through the device, in the order of the slot's stream. */
struct slot {
    cudaStream_t stream;
    void *host;          /* pinned, 2 * SLOT_HOST_BYTES: a's chunk, which the sum overwrites, then b's */
    void *device;        /* the flag word, a's chunk, which the sum overwrites, then b's; only during a transfer */
    size_t begin, count; /* the components in flight; count is 0 when none are */
};

/* The slots and streams kept from transfer to transfer. */
struct transfer_ring {
    int device;      /* whose streams these are; the pinned memory serves every device */
    unsigned *flags; /* pinned: floating-point flags for zero_copy.c; NULL until needed */
    int size;
    struct slot slots[];
};

/* One operand, as the driver describes it. */
struct transfer_memory {
    bool pinned;
    void *device; /* its address in kernels; NULL where they cannot access it */
};

struct transfer {
    const struct plan *plan;
    const struct transfer_options *options;
    int device;
    size_t width; /* bytes a component */
    struct transfer_memory a, b, c;
    size_t chunk; /* components a slot has room for */
    int depth;    /* slots a thread */
    struct slot *slots;
    atomic_size_t next; /* the first component that no thread has taken */
    atomic_uint fp_flags;
    atomic_bool failed; /* *status is set */
    struct status *status;
};

bool transfer_all_pinned(const struct transfer *job);

/* Fills job->a, b and c. */
int transfer_find_memory(struct transfer *job);

/* Keeps the first error of all threads, and makes the other threads stop at their next chunk. Always returns -1. */
int transfer_fail(struct transfer *job, const struct status *status);
int transfer_cuda_fail(struct transfer *job, cudaError_t error, const char *call);

/* The ring with at least `size` slots, its streams on `device`; NULL with *status set. */
struct transfer_ring *transfer_ring_get(int device, int size, struct status *status);

/* Frees the ring, from its device, with nothing in flight. Returns the bytes of its page-locked memory. */
size_t transfer_ring_free(struct transfer_ring *ring);

/* Makes page-locked memory of the ring, which transfer_counts includes until transfer_ring_free. */
int ring_memory_make(void **memory, size_t bytes, unsigned flags, struct status *status);

/* slot_open makes what the slot lacks, slot_open_stream its stream alone; slot_close frees what only this transfer
 * needs. Nothing is in flight. */
int slot_open(struct transfer *job, struct slot *slot, const struct device_scope *scope, struct status *status);
int slot_open_stream(struct slot *slot, struct status *status);
void slot_close(struct slot *slot);

/* Clears the flag word; called before anything else is queued. */
int slot_start(struct transfer *job, struct slot *slot);

/* Queues chunk number `chunk`, components [begin, begin + count): copies up, sum, copy down. */
int slot_queue(struct transfer *job, struct slot *slot, size_t chunk, size_t begin, size_t count);

/* Waits for the chunk in flight, if any, and copies its sum to c where c is not pinned. */
int slot_drain(struct transfer *job, struct slot *slot);

/* Reads the flags. Afterwards nothing of the slot is in flight, even after an error. */
void slot_finish(struct transfer *job, struct slot *slot);

/* The observer's calls around a step that slot_queue does not queue. */
size_t slot_before(const struct transfer *job, const struct slot *slot, enum transfer_step step, size_t chunk);
void slot_after(const struct transfer *job, const struct slot *slot, size_t token);

/* zero_copy.c: one launch on the first slot's stream that reads and writes the operands where they lie. Failures go to
 * the job. zero_copy_open makes the ring's flag word. */
bool zero_copy_possible(const struct transfer *job);
int zero_copy_open(struct transfer_ring *ring, struct status *status);
void zero_copy_run(struct transfer *job, struct transfer_ring *ring);

/* hybrid.c: the processor from the front, the GPU from the back. */
int hybrid_run(struct transfer *job, const struct device_scope *scope);

#endif
