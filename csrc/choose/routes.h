/* Chooses the route of an addition of host arrays when the call has no device=: host, transfer or hybrid.
 *
 * vecadd never starts CUDA by itself: the GPU is a candidate only once this process uses CUDA through vecadd or has
 * called use_gpu(). Then the measurements of `vecadd tune routes` on this machine decide, or without them, of large
 * page-locked arrays, what calls took (estimate.h). Until then, and below the smallest size at which a GPU route may be
 * faster, a call pays for one comparison. */
#ifndef VECADD_CHOOSE_ROUTES_H
#define VECADD_CHOOSE_ROUTES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/plan.h"
#include "base/status.h"
#include "choose/estimate.h"

/* "host", "transfer", "hybrid", "device", "numpy". */
extern const char *const route_name[];

enum memory_kind { MEMORY_ORDINARY, MEMORY_PINNED, MEMORY_KINDS };

enum routes_reason {
    ROUTES_ASKED,      /* the call's device= decides */
    ROUTES_NO_CUDA,    /* CUDA is not in use */
    ROUTES_FORBIDDEN,  /* use_gpu(False) */
    ROUTES_UNTUNED,    /* `vecadd tune routes` has not run, and these arrays are small or ordinary memory */
    ROUTES_FAILED,     /* the GPU failed in an earlier addition, and the host added instead */
    ROUTES_ROUNDING,   /* the caller's rounding mode is not the GPU's */
    ROUTES_CALIBRATED, /* the measurements decide */
    ROUTES_ESTIMATED,  /* `vecadd tune routes` has not run; what calls took decides */
};
extern const char *const routes_reason_name[];

/* The smallest operand in bytes for which a GPU route may be faster than the host; SIZE_MAX: none. */
extern atomic_size_t routes_from;

static inline bool
routes_may_leave_host(size_t bytes)
{
    return bytes >= atomic_load_explicit(&routes_from, memory_order_relaxed);
}

/* Sets the plan's route to the fastest for its operands, and what goes with it: device, chosen, estimated; a NULL c
 * will be ordinary memory. Asks the driver for the operands' kind of memory if it matters. Call it only if
 * routes_may_leave_host. */
void routes_choose(struct plan *plan);

/* Around a run of an estimated plan: sets the route that this run takes, and learns from its time. A run that has begun
 * must end. */
struct estimate_choice routes_begin(struct plan *plan);
void routes_end(const struct plan *plan, const struct estimate_choice *choice, long long ns);

/* Reports that a chosen GPU route failed and the host adds instead. From then on the host adds all, unless memory was
 * short or a stream was capturing. */
void routes_failed(const struct status *status);

/* use_gpu(True) and use_gpu(False). Makes no CUDA call; True forgets failures. */
void routes_use_gpu(bool wanted);

/* What explain() shows of a plan for host operands. */
struct routes_explanation {
    enum routes_reason reason;
    enum memory_kind memory;                        /* MEMORY_ORDINARY if CUDA is not in use */
    double seconds[ROUTE_DEVICE];                   /* predicted, by route; 0: unknown */
    struct estimate_choice estimate;                /* ROUTES_ESTIMATED */
    char failure[sizeof((struct status *)0)->text]; /* ROUTES_FAILED: the error's text */
};
void routes_explain(const struct plan *plan, bool asked, struct routes_explanation *explanation);

#endif
