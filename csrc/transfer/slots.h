/* What the ways through the GPU share: slots that chunks pass through, and one transfer's state. For transfer.c,
 * zero_copy.c and hybrid.c. */
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

/* Bytes of each operand that a slot's page-locked memory has room for. 16 threads through slots of 1 MiB take 17.6 ms
 * for 1e8 float32, of 512 KiB 19.6, of 4 MiB 26, because the slots no longer stay in the cache. */
enum { SLOT_HOST_BYTES = 1 << 20 };

/* One chunk's place on the way through the device, in the order of its own stream. */
struct slot {
    cudaStream_t stream;
    void *host;          /* pinned, 2 * SLOT_HOST_BYTES: a's chunk, which the sum comes back over, then b's */
    void *device;        /* the flag word, a's chunk, which becomes the sum, then b's; only during a transfer */
    size_t begin, count; /* the components in flight; count is 0 when there are none */
};

/* Kept from transfer to transfer. */
struct transfer_ring {
    int device;      /* of the streams; the pinned memory serves every device */
    unsigned *flags; /* pinned: zero_copy.c's word of floating-point flags; NULL until it is needed */
    int size;
    struct slot slots[];
};

/* One operand as the driver knows it. */
struct transfer_memory {
    bool pinned;
    void *device; /* the address that kernels have for it; NULL where they have none */
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
    atomic_bool failed; /* *status is taken */
    struct status *status;
};

bool transfer_all_pinned(const struct transfer *job);

/* Fills job->a, b and c. */
int transfer_find_memory(struct transfer *job);

/* Keeps the first error of all threads, and makes the others stop at their next chunk. Always returns -1. */
int transfer_fail(struct transfer *job, const struct status *status);
int transfer_cuda_fail(struct transfer *job, cudaError_t error, const char *call);

/* The ring with at least `size` slots, its streams on `device`; NULL with *status set. */
struct transfer_ring *transfer_ring_get(int device, int size, struct status *status);

/* On the ring's device; nothing is in flight. Returns the bytes of its page-locked memory. */
size_t transfer_ring_free(struct transfer_ring *ring);

/* Page-locked memory of the ring, which transfer_counts counts until transfer_ring_free. */
int ring_memory_make(void **memory, size_t bytes, unsigned flags, struct status *status);

/* Makes what the slot lacks, or its stream alone; slot_close gives back what is only this transfer's. Nothing is in
 * flight. */
int slot_open(struct transfer *job, struct slot *slot, const struct device_scope *scope, struct status *status);
int slot_open_stream(struct slot *slot, struct status *status);
void slot_close(struct slot *slot);

/* Clears the flag word: first of all that is queued. */
int slot_start(struct transfer *job, struct slot *slot);

/* Queues chunk number `chunk`, components [begin, begin + count): up, sum, down. */
int slot_queue(struct transfer *job, struct slot *slot, size_t chunk, size_t begin, size_t count);

/* Waits for the chunk in flight, if there is one, and hands its sum over. */
int slot_drain(struct transfer *job, struct slot *slot);

/* Takes the flags. Nothing of the slot is queued from then on, after an error neither. */
void slot_finish(struct transfer *job, struct slot *slot);

/* The step alone, for a kernel that no slot_queue queues. */
size_t slot_before(const struct transfer *job, const struct slot *slot, enum transfer_step step, size_t chunk);
void slot_after(const struct transfer *job, const struct slot *slot, size_t token);

/* zero_copy.c: one launch that reads and writes the operands where they lie, on the first slot's stream. A failure is
 * the job's. zero_copy_open makes what it needs of the ring. */
bool zero_copy_possible(const struct transfer *job);
int zero_copy_open(struct transfer_ring *ring, struct status *status);
void zero_copy_run(struct transfer *job, struct transfer_ring *ring);

/* hybrid.c: the processor from the front, the GPU from the back. */
int hybrid_run(struct transfer *job, const struct device_scope *scope);

#endif
