/* The only place that chooses: two operands and an out become a route and all that the route needs. Knows nothing of
 * Python: whoever has pointers, shapes, strides and dtypes can ask. */
#ifndef VECADD_CHOOSE_PLAN_H
#define VECADD_CHOOSE_PLAN_H

#include <stdbool.h>

#include "base/addition.h"
#include "base/operand.h"
#include "base/plan.h"
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

/* Bytes of a sum of another layout than one run of components from which the host's way pays. Below, numpy.add takes
 * the same time on the one thread that we would use, and it knows every case: on two cores of an EPYC 7B13 a float32
 * row on a matrix takes 0.4 of its time at 256 KiB, a conversion to float64 0.9 to 1.1 there and 0.5 at 2 MiB, on two
 * threads.
 */
enum { PLAN_STRIDED_MIN = 256 << 10, PLAN_CONVERTED_MIN = 1 << 20 };

/* Plans a host addition of one run of components: the shortest way here, for the calls that are most. add->c may be
 * NULL where the sum is still to be made; it is else a, b, or memory that overlaps neither. Returns 0, or -1 with
 * *status set. */
int plan_host_run(struct plan *plan, const struct batch_add *add, const struct plan_request *request,
                  struct status *status);

/* Plans c = a + b: one of six ways, which are the routes, of which the host and the device have two, one run of
 * components or any layout (plan->strided). `addition` is what addition_resolve made of the operands, and stays as long
 * as the plan; NULL for device operands of one dtype and shape that are one run of memory each. They overlap wholly or,
 * for the device, in any way. operands[2] may be NULL, or have no data, where the sum is still to be made; where the
 * operands are to be materialised they are not looked at.
 *
 * Reads no element, and where the route is given makes no CUDA call; where it is open and CUDA in play it may ask the
 * driver what memory the operands lie in. It can be asked without being run. Returns 0, or -1 with *status set. */
int plan_make(struct plan *plan, const struct addition *addition, const struct operand *const operands[3],
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
