/* Chooses the route of an addition of host arrays when the call has no device=: host, transfer or hybrid.
 *
 * vecadd never starts CUDA by itself: the GPU is a candidate only once this process uses CUDA through vecadd or has
 * called use_gpu(), and only by the measurements of `vecadd tune routes` on this machine. Until then, and below the
 * smallest size at which a GPU route was faster, a call pays for one comparison. */
#ifndef VECADD_CHOOSE_ROUTES_H
#define VECADD_CHOOSE_ROUTES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/plan.h"
#include "base/status.h"

/* "host", "transfer", "hybrid", "device", "numpy". */
extern const char *const route_name[];

enum memory_kind { MEMORY_ORDINARY, MEMORY_PINNED, MEMORY_KINDS };

enum routes_reason {
    ROUTES_ASKED,      /* the call's device= decides */
    ROUTES_NO_CUDA,    /* CUDA is not in use */
    ROUTES_FORBIDDEN,  /* use_gpu(False) */
    ROUTES_UNTUNED,    /* CUDA is in use, but `vecadd tune routes` has not run */
    ROUTES_FAILED,     /* the GPU failed in an earlier addition, and the host added instead */
    ROUTES_ROUNDING,   /* the caller's rounding mode is not the GPU's */
    ROUTES_CALIBRATED, /* the measurements decide */
};
extern const char *const routes_reason_name[];

/* The smallest operand in bytes for which a GPU route may be faster than the host; SIZE_MAX: none. */
extern atomic_size_t routes_from;

static inline bool
routes_may_leave_host(size_t bytes)
{
    return bytes >= atomic_load_explicit(&routes_from, memory_order_relaxed);
}

/* The fastest measured route for the plan's operands; a NULL c will be ordinary memory. Asks the driver for the
 * operands' kind of memory if it matters. *device gets the measured GPU. Call it only if routes_may_leave_host. */
enum route routes_choose(const struct plan *plan, int *device);

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
    char failure[sizeof((struct status *)0)->text]; /* ROUTES_FAILED: the error's text */
};
void routes_explain(const struct plan *plan, bool asked, struct routes_explanation *explanation);

#endif
