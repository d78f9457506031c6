/* Host arrays through the GPU and back: chunks on streams, both directions of the link at once.
 *
 * Pinned operands are copied from where they lie; ordinary memory goes through a ring of pinned slots that several
 * threads fill and empty. */
#ifndef VECADD_TRANSFER_H
#define VECADD_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>

#include "plan.h"
#include "status.h"

enum transfer_step { TRANSFER_TO_DEVICE, TRANSFER_KERNEL, TRANSFER_TO_HOST };

/* Is told of every copy and kernel, from several threads at once: before it is queued on `stream` (cudaStream_t), the
 * one of slot number `slot`, and after, with what `before` returned. */
struct transfer_observer {
    size_t (*before)(void *context, enum transfer_step step, int slot, void *stream, size_t chunk);
    void (*after)(void *context, size_t token, void *stream);
    void *context;
};

/* What only the ladder asks for. */
struct transfer_options {
    bool staged;                              /* all through the ring, pinned operands too */
    int threads;                              /* that fill and empty the ring; 0: all there are */
    const struct transfer_observer *observer; /* NULL: nobody asks */
};

/* Runs ROUTE_TRANSFER and returns when the sum has arrived. *fp_flags as in plan_run. c overlaps a and b wholly or not
 * at all. One transfer runs at a time a process; others wait. */
int transfer_add(const struct plan *plan, unsigned *fp_flags, struct status *status);

/* The same with options; NULL: none. */
int transfer_add_with(const struct plan *plan, const struct transfer_options *options, unsigned *fp_flags,
                      struct status *status);

/* No transfer of so many bytes an operand is cut into more chunks than this. */
size_t transfer_most_chunks(size_t bytes);

/* Frees the ring, the slots and the streams; the next transfer makes new ones. */
void transfer_release(void);

#endif
