/* Chooses the route of an addition, and fills in all that the route needs. No other code chooses. Independent of
 * Python: the input is pointers, shapes, strides and dtypes. */
#ifndef VECADD_CHOOSE_PLAN_H
#define VECADD_CHOOSE_PLAN_H

#include <stdbool.h>

#include "base/addition.h"
#include "base/operand.h"
#include "base/plan.h"
#include "base/status.h"

/* The call's arguments beside the operands. */
struct plan_request {
    bool on_device;  /* device="cuda...": the GPU adds host operands */
    bool hybrid;     /* device="hybrid": processor and GPU share them */
    bool open;       /* no device= given: the route that is predicted to be the fastest */
    int device;      /* if on_device: the ordinal, or -1 for the thread's current device */
    bool has_stream; /* stream= was given */
    void *stream;
    bool repeats;                      /* the plan is kept and run again, or not run */
    int threads;                       /* of the host, all of them woken; 0: by size */
    const struct fallback_loop *below; /* NULL, or who adds where one thread of ours is no faster. Borrowed */
};

/* The least bytes of a strided or converting sum that vecadd adds on the host. Smaller sums would run on one thread,
 * take as long as numpy.add does, and numpy.add handles every case. On two cores of an EPYC 7B13 a float32 row plus a
 * matrix takes 0.4 of NumPy's time at 256 KiB; a conversion to float64 takes 0.9 to 1.1 there, and 0.5 at 2 MiB, on two
 * threads. */
enum { PLAN_STRIDED_MIN = 256 << 10, PLAN_CONVERTED_MIN = 1 << 20 };

/* Plans a host addition of one contiguous run of components, by the shortest way there is: most calls are such. add->c
 * is NULL for a new sum, for which plan_new_sum completes the plan; else it is a, b, or memory that overlaps neither.
 * Returns 0, or -1 with *status set. */
int plan_host_run(struct plan *plan, const struct batch_add *add, const struct plan_request *request,
                  struct status *status);

/* Puts a new sum's memory into a plan of host arrays; NULL where only explain() asks. Returns 0, or -1 with *status
 * set. */
int plan_new_sum(struct plan *plan, void *c, struct status *status);

/* Plans c = a + b. The host and the device route each have two forms: one contiguous run of components, or any layout
 * (plan->strided). `addition` is the result of addition_resolve and outlives the plan; NULL for device operands of one
 * dtype and shape that are contiguous, which may overlap in any way. operands[2] may be NULL, or have no data, for a
 * new sum.
 *
 * Reads no element, and makes no CUDA call if the caller gave the route. If the route is open and CUDA in use, it may
 * ask the driver for the operands' kind of memory. A plan need not be run. Returns 0, or -1 with *status set. */
int plan_make(struct plan *plan, const struct addition *addition, const struct operand *const operands[3],
              const struct plan_request *request, struct status *status);

/* Checks that this process sees the GPU of a ROUTE_TRANSFER or ROUTE_HYBRID plan that need not be run. Asks the driver,
 * and makes no context. Returns 0, or -1 with what plan_run would set *status to. */
int plan_check_device(const struct plan *plan, struct status *status);

/* Makes the kernel of a ROUTE_DEVICE plan wait for the work queued on `stream`, and `stream` wait for the kernel. Call
 * it at most once for each of the three operands. */
void plan_join(struct plan *plan, void *stream);

/* The stream on which a device addition runs without stream=. Entries may be NULL. */
struct stream_leader plan_leader(const struct operand *const operands[3]);

/* Runs the plan. The device route returns when the work is queued, the others when it is done. *fp_flags gets the
 * floating-point flags raised (0 on the device route). Returns 0, or -1 with *status set. */
int plan_run(const struct plan *plan, unsigned *fp_flags, struct status *status);

/* --- Open routes: between the processor alone and processor and GPU together (the hybrid), for host arrays whose call
 * has no device=.
 *
 * vecadd never starts CUDA by itself: the GPU may take part only once this process uses CUDA through vecadd or has
 * called use_gpu(). Then a formula decides, of page-locked arrays of HYBRID_MIN bytes or more; all others stay on the
 * host. Until then, and for smaller arrays, a call pays for one comparison. */

/* "host", "transfer", "hybrid", "device", "numpy". */
extern const char *const route_name[];

/* Predicts the seconds of each route for operands of `bytes` each: `threads` of the host, and a link that carries
 * `link` bytes a second in one direction in theory (0: not known). Returns whether the hybrid is ahead of the host. */
bool routes_predict(size_t bytes, int threads, double link, double seconds[ROUTE_DEVICE]);

/* use_gpu(True) and use_gpu(False). Makes no CUDA call; True forgets failures. */
void routes_use_gpu(bool wanted);

/* What decides the route of a plan of host operands, for explain(). */
enum routes_reason {
    ROUTES_ASKED, /* the call's device= */
    ROUTES_NO_CUDA,
    ROUTES_FORBIDDEN,
    ROUTES_FAILED,
    ROUTES_SMALL_OR_ORDINARY, /* the arrays have less than HYBRID_MIN bytes, or are not all page-locked */
    ROUTES_ROUNDING,          /* the caller's rounding mode is not the GPU's */
    ROUTES_PREDICTED,         /* the predicted times */
};

struct routes_explanation {
    enum routes_reason reason;
    bool pinned;                                    /* all three arrays; false if CUDA is not in use */
    bool hybrid;                                    /* ROUTES_PREDICTED: it is ahead of the host */
    double seconds[ROUTE_DEVICE];                   /* ROUTES_PREDICTED: by route */
    char failure[sizeof((struct status *)0)->text]; /* ROUTES_FAILED: the error's text */
};
void routes_explain(const struct plan *plan, bool asked, struct routes_explanation *found);

#endif
