/* Chooses the route of an addition, and fills in all that the route needs. No other code chooses. Independent of
 * Python: the input is pointers, shapes, strides and dtypes. */
#ifndef VECADD_CHOOSE_PLAN_H
#define VECADD_CHOOSE_PLAN_H

#include <stdbool.h>

#include "base/addition.h"
#include "base/operand.h"
#include "base/plan.h"
#include "base/status.h"
#include "base/stream_order.h"

/* The call's arguments beside the operands. */
struct plan_request {
    bool on_device;  /* device="cuda...": the GPU adds host operands */
    bool hybrid;     /* device="hybrid": processor and GPU share them */
    bool open;       /* no device= given: the route that choose/routes.h predicts to be the fastest */
    int device;      /* if on_device: the ordinal, or -1 for the thread's current device */
    bool has_stream; /* stream= was given */
    void *stream;
};

/* The least bytes of a strided or converting sum that vecadd adds on the host. Smaller sums would run on one thread,
 * take as long as numpy.add does, and numpy.add handles every case. On two cores of an EPYC 7B13 a float32 row plus a
 * matrix takes 0.4 of NumPy's time at 256 KiB; a conversion to float64 takes 0.9 to 1.1 there, and 0.5 at 2 MiB, on two
 * threads. */
enum { PLAN_STRIDED_MIN = 256 << 10, PLAN_CONVERTED_MIN = 1 << 20 };

/* Plans a host addition of one contiguous run of components, by the shortest way there is: most calls are such. add->c
 * is NULL for a new sum; else it is a, b, or memory that overlaps neither. Returns 0, or -1 with *status set. */
int plan_host_run(struct plan *plan, const struct batch_add *add, const struct plan_request *request,
                  struct status *status);

/* Plans c = a + b. The host and the device route each have two forms: one contiguous run of components, or any layout
 * (plan->strided). `addition` is the result of addition_resolve and outlives the plan; NULL for device operands of one
 * dtype and shape that are contiguous, which may overlap in any way. operands[2] may be NULL, or have no data, for a
 * new sum.
 *
 * Reads no element, and makes no CUDA call if the caller gave the route. If the route is open and CUDA in use, it may
 * ask the driver for the operands' kind of memory. A plan need not be run. Returns 0, or -1 with *status set. */
int plan_make(struct plan *plan, const struct addition *addition, const struct operand *const operands[3],
              const struct plan_request *request, struct status *status);

/* Checks that this process sees the GPU of a ROUTE_TRANSFER or ROUTE_HYBRID plan that need not be run: the driver is
 * asked, and no context made. Returns 0, or -1 with what plan_run would set *status to. */
int plan_check_device(const struct plan *plan, struct status *status);

/* Makes the kernel of a ROUTE_DEVICE plan wait for the work queued on `stream`, and `stream` wait for the kernel. Call
 * it at most once for each of the three operands. */
void plan_join(struct plan *plan, void *stream);

/* The stream on which a device addition runs without stream=. Entries may be NULL. */
struct stream_leader plan_leader(const struct operand *const operands[3]);

/* Runs the plan. The device route returns when the work is queued, the others when it is done. *fp_flags gets the
 * floating-point flags raised (0 on the device route). Returns 0, or -1 with *status set. */
int plan_run(const struct plan *plan, unsigned *fp_flags, struct status *status);

#endif
