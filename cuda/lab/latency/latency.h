/* The kernels of the latency rungs, as plain C sees them: small additions, launched one by one or together. Nothing is
 * checked here and nothing waits. Functions give 0 or a cudaError_t. */
#ifndef VECADD_CUDA_LAB_LATENCY_LATENCY_H
#define VECADD_CUDA_LAB_LATENCY_LATENCY_H

#include <stdint.h>

#include "lab/base/rung.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One of each width, and each kind of arithmetic: what is measured here is the launch. */
enum {
    LATENCY_COMPONENTS = 1 << COMPONENT_F32 | 1 << COMPONENT_F64 | 1 << COMPONENT_F16 | 1 << COMPONENT_BF16 |
                         1 << COMPONENT_I32 | 1 << COMPONENT_I8
};

/* A way to queue c = a + b. Loading brings the kernel of the call's component onto the current device: no kernel may be
 * loaded in a capture or in what is timed. */
struct small_add {
    int (*launch)(const struct rung_call *call);
    int (*load)(const struct rung_call *call);
    const char *call; /* the CUDA function that launches, for messages */
};

extern const struct small_add serial_add;     /* wait.cu: begins when the kernel ahead has ended */
extern const struct small_add waiting_add;    /* wait.cu: begins before, and waits */
extern const struct small_add triggering_add; /* trigger.cu: and lets the kernel behind begin */

/* One addition of many, as the kernel reads it: n components. */
struct segment {
    const void *a, *b;
    void *c;
    uint64_t n;
};

/* batched.cu: queues all of them in one launch. `segments` is device memory, `longest` the n of the longest; call gives
 * the component and the stream. */
int batched_launch(const struct rung_call *call, const struct segment *segments, unsigned count, uint64_t longest);
int batched_load(const struct rung_call *call);

#ifdef __cplusplus
}
#endif
#endif
