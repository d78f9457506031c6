/* An addition as plain data, once it is decided how it is made: what choose/ fills in, and host/, gpu/ and transfer/
 * do.
 */
#ifndef VECADD_BASE_PLAN_H
#define VECADD_BASE_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"

/* ROUTE_NONE: no code of ours adds it; NumPy does, or the operands' library. */
enum route { ROUTE_HOST, ROUTE_TRANSFER, ROUTE_HYBRID, ROUTE_DEVICE, ROUTE_NONE };

/* How one host addition is run; host/thresholds.h has the machine's thresholds that it follows from. */
struct host_schedule {
    int threads;          /* at most, the caller among them */
    bool wakes;           /* sleeping workers are woken; else those take part that are awake */
    bool streaming;       /* the stores of several threads */
    bool streaming_alone; /* and of one, where no other takes part */
    bool narrow;          /* by simd->narrower where there is one and the component gains by it */
    size_t block;         /* components a thread takes at a time */
};

struct host_simd;
struct strided;

struct plan {
    enum route route;
    enum component component; /* of the sum */
    size_t n;                 /* components, not elements: twice the elements for complex */
    const void *a, *b;
    void *c;
    const struct host_simd *simd;  /* ROUTE_HOST, ROUTE_HYBRID */
    struct host_schedule schedule; /* ROUTE_HOST, ROUTE_HYBRID */
    bool chosen;      /* ROUTE_TRANSFER and ROUTE_HYBRID by measurement: the host adds where the GPU fails */
    bool materialize; /* ROUTE_TRANSFER and ROUTE_HYBRID: the operands have to be broadcast, cast or copied first, and
                       * the rest of the plan is empty */
    const struct strided *strided; /* ROUTE_HOST, ROUTE_DEVICE: NULL for one run of components; else a, b and c are the
                                    * addresses of first elements and n counts elements. Borrowed */
    int device;                    /* all but ROUTE_HOST; -1: the thread's current device */
    void *stream;                  /* ROUTE_DEVICE: where the kernel runs */
    void *join[3]; /* ROUTE_DEVICE: the operands' other streams. The kernel waits for what they hold, and
                    * they wait for the kernel: memory is freed and rewritten in their order */
    int joins;
    const char *why; /* ROUTE_NONE: why vecadd leaves it, in a few words */
};

/* c = a + b over n components. c may be a or b; it overlaps neither in part, nor an operand of another addition. */
struct batch_add {
    const void *a, *b;
    void *c;
    size_t n;
    enum component component;
};

#endif
