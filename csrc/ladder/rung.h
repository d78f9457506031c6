/* The ladder: each rung is one way to add, callable by name, described by one `struct rung`.
 *
 * Device rungs stand one a file in cuda/ladder/, transfer and host rungs in csrc/ladder/; cuda/ladder/table.c and
 * csrc/ladder/table.c list them in order. */
#ifndef VECADD_RUNG_H
#define VECADD_RUNG_H

#include <stddef.h>

#include "dtype.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum rung_kind { RUNG_HOST, RUNG_DEVICE, RUNG_TRANSFER };

struct rung_call {
    enum lane lane;
    const void *a, *b;
    void *c;
    size_t n;       /* lanes */
    unsigned block; /* threads a block; 0: the rung's own */
    void *stream;   /* device rungs: cudaStream_t on the current device */
    int device;     /* transfer rungs */
};

struct rung {
    const char *name;
    enum rung_kind kind;
    const char *changes;      /* what this rung changes, in one line, for the table */
    const char *tested;       /* "double" or "gpu": where its tests run */
    unsigned bytes_per_load;  /* device rungs, a thread's load of float32; else 0 */
    unsigned loads_in_flight; /* device rungs, a thread, before the first use; else 0 */
    unsigned block;           /* device rungs: threads a block by default */
    size_t alignment;         /* bytes that a, b and c must be aligned to; 0: the lane's own */
    int lanes;                /* bit 1 << lane set for each lane it takes */

    /* Device rungs: queue the kernel; 0 or a cudaError_t. */
    int (*launch)(const struct rung_call *call);
    /* Host and transfer rungs: add and return when it is done; 0, or -1 with *status set. */
    int (*run)(const struct rung_call *call, struct status *status);
};

/* The i-th rung of this build in the ladder's order, NULL past the last. */
const struct rung *rung_at(size_t i);

/* The rung of that name, or NULL. */
const struct rung *rung_named(const char *name);

#ifdef __cplusplus
}
#endif
#endif
