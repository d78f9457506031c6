/* The C interface of the latency rungs' kernels: small additions, launched one by one or together. These functions
 * check nothing and do not wait. They return 0 or a cudaError_t. */
#ifndef VECADD_CUDA_LAB_LATENCY_H
#define VECADD_CUDA_LAB_LATENCY_H

#include <stdint.h>

#include "lab/base/rung.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One component of each width and kind of arithmetic suffices: these rungs measure launches. */
enum {
    LATENCY_COMPONENTS = 1 << COMPONENT_F32 | 1 << COMPONENT_F64 | 1 << COMPONENT_F16 | 1 << COMPONENT_BF16 |
                         1 << COMPONENT_I32 | 1 << COMPONENT_I8
};

/* A way to queue c = a + b. `load` loads the kernel of the call's component onto the current device: that must not
 * happen in a capture or in the timed part. */
struct small_add {
    int (*launch)(const struct rung_call *call);
    int (*load)(const struct rung_call *call);
    const char *call; /* the CUDA function that launches, for messages */
};

extern const struct small_add serial_add;     /* begins when the kernel ahead has ended */
extern const struct small_add waiting_add;    /* may begin before, and waits for it */
extern const struct small_add triggering_add; /* as waiting_add, and lets the next kernel begin early */

/* One addition of the batched kernel's table: n components. */
struct segment {
    const void *a, *b;
    void *c;
    uint64_t n;
};

/* Queues all additions of the table in one launch. `segments` is device memory, `longest` the greatest n;
 * `call` gives the component and the stream. */
int batched_launch(const struct rung_call *call, const struct segment *segments, unsigned count, uint64_t longest);
extern const struct small_add batched_adds; /* launches by batched_launch alone */

#ifdef __cplusplus
}
#endif
#endif
