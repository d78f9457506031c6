/* The only place that chooses: two operands and an out become a route and all that the route needs. */
#ifndef VECADD_CHOOSE_PLAN_H
#define VECADD_CHOOSE_PLAN_H

#include <stdbool.h>

#include "base/addition.h"
#include "base/operand.h"
#include "base/status.h"

/* What the caller asked for beside the operands. */
struct plan_request {
    bool on_device;  /* device="cuda...": host operands go through the GPU */
    bool hybrid;     /* device="hybrid": processor and GPU share them */
    bool open;       /* neither, nor device="cpu": the fastest that was measured */
    int device;      /* of on_device: that ordinal, or -1: the thread's current device */
    bool has_stream; /* stream= was given */
    void *stream;
};

/* Plans c = a + b. The operands are of one dtype and one shape; they overlap wholly or, for the device, in any way.
 * Reads no element, and where the route is given makes no CUDA call; where it is open and CUDA in play it may ask the
 * driver what memory the operands lie in. It can be asked without being run. Returns 0, or -1 with *status set. */
int plan_make(struct plan *plan, const struct operand *a, const struct operand *b, const struct operand *out,
              const struct plan_request *request, struct status *status);

/* Has the plan's kernel, of ROUTE_DEVICE, come after what `stream` holds when it is run, and that after the kernel. For
 * each of the three operands once. */
void plan_join(struct plan *plan, void *stream);

/* The operand on whose stream a device addition runs without stream=; NULL where none has one. Entries may be NULL. */
const struct operand *plan_leader(const struct operand *const operands[3]);

/* Does it. The device route returns when the work is queued, the others when it is done. *fp_flags gets the
 * floating-point flags raised (0 on the device route). Returns 0, or -1 with *status set. */
int plan_run(const struct plan *plan, unsigned *fp_flags, struct status *status);

#endif
