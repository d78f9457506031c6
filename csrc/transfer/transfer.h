/* Host arrays through the GPU and back: chunks on streams, both directions of the link at once.
 *
 * Pinned operands are copied directly, and small ones read in place by the kernel. Ordinary memory goes through a ring
 * of pinned slots that several threads fill and empty. */
#ifndef VECADD_TRANSFER_TRANSFER_H
#define VECADD_TRANSFER_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/plan.h"
#include "base/status.h"

/* Options that only the ladder and tests set. */
enum transfer_step { TRANSFER_TO_DEVICE, TRANSFER_KERNEL, TRANSFER_TO_HOST };

/* Called for every copy and kernel, from several threads at once: `before` before it is queued on `stream`
 * (cudaStream_t), that of slot number `slot`, and `after` afterwards, with the result of `before`. */
struct transfer_observer {
    size_t (*before)(void *context, enum transfer_step step, int slot, void *stream, size_t chunk);
    void (*after)(void *context, size_t token, void *stream);
    void *context;
};

enum transfer_way {
    TRANSFER_BEST,      /* chosen from those below by where the operands are and how long they are */
    TRANSFER_COPIES,    /* never zero-copy */
    TRANSFER_ZERO_COPY, /* at any size, where the operands are pinned */
    TRANSFER_STAGED,    /* all through the ring, pinned operands too */
};

struct transfer_options {
    enum transfer_way way;
    int threads;                              /* threads that fill and empty the ring; 0: all available */
    const struct transfer_observer *observer; /* NULL: none */
};

/* The third result of transfer_add, besides 0 and -1: it failed after writing to c, which is then undefined. */
enum { TRANSFER_SPOILED = -2 };

/* The type of transfer_add and hybrid_add. */
typedef int transfer_function(const struct plan *plan, const struct transfer_options *options, unsigned *fp_flags,
                              struct status *status);

/* Runs ROUTE_TRANSFER and returns when the sum has arrived; `options` may be NULL. *fp_flags as in plan_run. c overlaps
 * a and b wholly or not at all. One transfer runs at a time in a process; others wait. Returns 0, or with *status set
 * -1, with c unchanged, or TRANSFER_SPOILED. */
int transfer_add(const struct plan *plan, const struct transfer_options *options, unsigned *fp_flags,
                 struct status *status);

/* Bytes of an operand below which the processor has added everything before a GPU's first chunk is back: 8 MiB took 139
 * us with a GPU's help and 117 without, 16 MiB 148 and 120, 64 MiB 593 and 675. choose/plan.c leaves those to the
 * host. */
enum { HYBRID_MIN = 32 << 20 };

/* Runs ROUTE_HYBRID, whose plan has the host's simd and schedule: processor and GPU take blocks from the two ends until
 * they meet. The processor alone adds ordinary memory. Options and result as transfer_add's. */
int hybrid_add(const struct plan *plan, const struct transfer_options *options, unsigned *fp_flags,
               struct status *status);

/* An upper limit on the chunks of a transfer of `bytes` an operand. */
size_t transfer_most_chunks(size_t bytes);

/* Whether all of [memory, memory + bytes) is pinned, as one allocation or registration; false where the driver cannot
 * say. For a process that uses CUDA. */
bool transfer_memory_pinned(const void *memory, size_t bytes);

/* Frees the ring, its slots and streams, and returns the bytes of their page-locked memory; the next transfer makes new
 * ones. Leaves a ring that a transfer in another thread uses. Waits for the work of every stream, so the caller has
 * no lock. */
size_t transfer_release(void);

/* The page-locked memory that the ring keeps from transfer to transfer: up to 2 * threads * 2 MiB. */
struct transfer_counts {
    size_t bytes, blocks;
};
struct transfer_counts transfer_counts(void);

#endif
