/* Which way an addition of host arrays goes where the caller leaves it open: host, transfer or hybrid.
 *
 * CUDA is never a surprise: the GPU is a candidate only once this process uses CUDA through vecadd, or the caller has
 * asked for it by use_gpu(), and only by what `vecadd tune routes` has measured on this machine. Until then, and below
 * the size from which anything else was ever faster, a call pays for one comparison. */
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
    ROUTES_ASKED,      /* device= says so */
    ROUTES_NO_CUDA,    /* CUDA is not in play */
    ROUTES_FORBIDDEN,  /* use_gpu(False) */
    ROUTES_UNTUNED,    /* CUDA is in play, and nobody has measured */
    ROUTES_FAILED,     /* the GPU has failed under an addition that could be made good */
    ROUTES_ROUNDING,   /* the caller rounds as no GPU does */
    ROUTES_CALIBRATED, /* by what was measured */
    ROUTES_REASONS
};
extern const char *const routes_reason_name[];

/* The least bytes of an operand from which another route than the host's may be faster; SIZE_MAX: never. */
extern atomic_size_t routes_from;

static inline bool
routes_may_leave_host(size_t bytes)
{
    return bytes >= atomic_load_explicit(&routes_from, memory_order_relaxed);
}

/* The measured route of plan's operands, whose c may still be NULL: it will be ordinary memory. Asks the driver what
 * memory they lie in where that matters. *device gets the GPU that was measured. Only where routes_may_leave_host. */
enum route routes_choose(const struct plan *plan, int *device);

/* An automatic route has failed and the host has added instead: from now on it adds all, unless memory was short or a
 * stream captured. */
void routes_failed(const struct status *status);

/* use_gpu(True) and use_gpu(False). Makes no CUDA call; True forgets failures. */
void routes_use_gpu(bool wanted);

/* What explain() tells of a plan of host operands. */
struct routes_explanation {
    enum routes_reason reason;
    enum memory_kind memory;                        /* MEMORY_ORDINARY where CUDA is not in play */
    double seconds[ROUTE_DEVICE];                   /* predicted, by route; 0: nothing is known */
    char failure[sizeof((struct status *)0)->text]; /* ROUTES_FAILED: what was said of it */
};
void routes_explain(const struct plan *plan, bool asked, struct routes_explanation *explanation);

#endif
