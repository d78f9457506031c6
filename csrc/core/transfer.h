/* Host arrays through the GPU and back: chunks on streams, both directions of the link at once.
 *
 * Pinned operands are copied from where they lie; ordinary memory goes through a ring of pinned slots that several
 * threads fill and empty. */
#ifndef VECADD_TRANSFER_H
#define VECADD_TRANSFER_H

#include "plan.h"
#include "status.h"

/* Runs ROUTE_TRANSFER and returns when the sum has arrived. *fp_flags as in plan_run. c overlaps a and b wholly or not
 * at all. One transfer runs at a time a process; others wait. */
int transfer_add(const struct plan *plan, unsigned *fp_flags, struct status *status);

/* Frees the ring, the slots and the streams; the next transfer makes new ones. */
void transfer_release(void);

#endif
