/* Chooses between the processor alone and processor and GPU together (the hybrid) for an addition of host arrays whose
 * call has no device=.
 *
 * vecadd never starts CUDA by itself: the GPU may take part only once this process uses CUDA through vecadd or has
 * called use_gpu(). Then a formula decides, of page-locked arrays of HYBRID_MIN bytes or more; all others stay on the
 * host. Until then, and for smaller arrays, a call pays for one comparison. */
#ifndef VECADD_CHOOSE_ROUTES_H
#define VECADD_CHOOSE_ROUTES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/plan.h"
#include "base/status.h"
#include "transfer/transfer.h"

/* "host", "transfer", "hybrid", "device", "numpy". */
extern const char *const route_name[];

/* Why the GPU may take no part in additions without device=; 0: it may. */
enum {
    GPU_UNUSED = 1,    /* this process has not used CUDA through vecadd */
    GPU_FORBIDDEN = 2, /* use_gpu(False) */
    GPU_FAILED = 4,    /* in an earlier addition, and the host added instead */
    GPU_LEFT = 8,      /* at exit, and in a child of a process that had used CUDA */
};
extern atomic_uint gpu_barred;

/* Whether the GPU may take part in an addition of operands of so many bytes. */
static inline bool
gpu_may_add(size_t bytes)
{
    return bytes >= HYBRID_MIN && atomic_load_explicit(&gpu_barred, memory_order_acquire) == 0;
}

/* Predicts the seconds of each route for operands of so many bytes each: `threads` of the host, and a link that carries
 * `link` bytes a second in one direction in theory (0: not known). Returns whether the hybrid is ahead of the host. */
bool routes_predict(size_t bytes, int threads, double link, double seconds[ROUTE_DEVICE]);

/* Makes a plan of ROUTE_HOST one of ROUTE_HYBRID if that is predicted to be faster. A NULL c will be ordinary memory.
 * Asks the driver for the operands' kind of memory. Call it only if gpu_may_add. */
void choose_open_route(struct plan *plan);

/* Reports that a chosen GPU route failed and the host adds instead. From then on the host adds all, unless memory was
 * short or a stream was capturing. */
void routes_record_failure(const struct status *status);

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
    double seconds[ROUTE_DEVICE];                   /* ROUTES_PREDICTED: by route */
    char failure[sizeof((struct status *)0)->text]; /* ROUTES_FAILED: the error's text */
};
void routes_explain(const struct plan *plan, bool asked, struct routes_explanation *found);

#endif
