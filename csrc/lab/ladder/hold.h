/* A GPU without room for a kernel, for a while: work behind a call that is over meanwhile waits for no kernel of it. */
#ifndef VECADD_LAB_LADDER_HOLD_H
#define VECADD_LAB_LADDER_HOLD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct hold;

/* Fills the GPU, which is at rest, for at most so many cycles of its clock. `sum`, `bytes` of device memory, is what an
 * array is to be compared with. Waits. *hold is NULL where the GPU could not be filled, and after a failure: -1 with
 * *status set. The thread is on the device. */
int hold_begin(struct hold **hold, int device, const void *sum, size_t bytes, unsigned cycles, struct status *status);

/* Copies `out` to the host in the order of the legacy default stream, and waits until that is over or the time is.
 * *unordered is whether it was over first and out was not the sum. Returns 0, or -1 with *status set. */
int hold_look(const struct hold *hold, const void *out, bool *unordered, struct status *status);

/* Lets kernels run, waits for the device, and sets *hold, which may be NULL, to NULL. */
void hold_end(struct hold **hold);

#endif
