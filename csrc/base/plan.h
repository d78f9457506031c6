/* A planned addition as plain data: choose/ fills it in; host/, gpu/ and transfer/ run it. */
#ifndef VECADD_BASE_PLAN_H
#define VECADD_BASE_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"

/* ROUTE_NONE: vecadd leaves the addition to NumPy or the operands' library. */
enum route { ROUTE_HOST, ROUTE_TRANSFER, ROUTE_HYBRID, ROUTE_DEVICE, ROUTE_NONE };

/* Adds the whole of an addition on the calling thread in place of our loop: add(context). */
struct fallback_loop {
    void (*add)(void *context);
    void *context;
};

struct host_simd;
struct strided;

/* How the host runs one addition: host_schedule() decides, and nothing below it decides again. */
struct host_schedule {
    const struct host_simd *simd;
    int threads;        /* at most, including the caller */
    int starts;         /* missing workers that it starts at most, where it wakes any */
    bool wakes;         /* sleeping workers are woken; otherwise those take part that still spin after an earlier sum */
    bool streaming;     /* streaming (non-temporal) stores */
    bool streams_alone; /* ordinary stores, but streaming ones where no worker takes part */
    bool narrow;        /* simd->narrower, if there is one and the component gains by it */
    bool stays_in_slice; /* each thread keeps to the slice that its cache contains, if no worker must wake first */
    size_t block; /* units that a thread takes at a time: components, or elements of a strided sum; 0 for one thread */
    const struct fallback_loop *fallback; /* NULL, or the loop that adds where no worker takes part. Borrowed */
};

struct plan {
    enum route route;
    enum component component; /* of the sum */
    size_t n;                 /* components, not elements: twice the elements for complex */
    const void *a, *b;
    void *c;
    struct host_schedule schedule; /* ROUTE_HOST, ROUTE_HYBRID */
    bool chosen;                   /* ROUTE_HYBRID, chosen for speed: the host adds if the GPU fails */
    const struct strided *strided; /* ROUTE_HOST, ROUTE_DEVICE: NULL for one contiguous run of components; else a, b and
                                    * c point to first elements and n counts elements. Borrowed */
    int device;                    /* all but ROUTE_HOST; -1: the thread's current device */
    void *stream;                  /* ROUTE_DEVICE: the kernel's stream */
    void *join[3]; /* ROUTE_DEVICE: the operands' other streams. The kernel waits for their queued work, and they wait
                    * for the kernel: they order the freeing and rewriting of the operands' memory */
    int joins;
    const char *why; /* ROUTE_NONE: the reason, in a few words */
};

/* Bytes of each operand of a contiguous plan. */
static inline size_t
plan_bytes(const struct plan *plan)
{
    return plan->n * component_size[plan->component];
}

/* c = a + b over n components. c may be a or b; it overlaps neither in part, nor any operand of another addition in the
 * batch. */
struct batch_add {
    const void *a, *b;
    void *c;
    size_t n;
    enum component component;
};

#endif
