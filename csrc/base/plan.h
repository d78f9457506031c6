/* A planned addition as plain data: choose/ fills it in; host/, gpu/ and transfer/ run it. */
#ifndef VECADD_BASE_PLAN_H
#define VECADD_BASE_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"

/* ROUTE_NONE: vecadd leaves the addition to NumPy or the operands' library. */
enum route { ROUTE_HOST, ROUTE_TRANSFER, ROUTE_HYBRID, ROUTE_DEVICE, ROUTE_NONE };

/* Adds the whole of an addition on the calling thread in place of our loop: add(context). */
struct host_alone {
    void (*add)(void *context);
    void *context;
};

/* How the host runs one addition, derived from this machine's thresholds (host/thresholds.h). */
struct host_schedule {
    int threads;          /* at most, including the caller */
    bool wakes;           /* wakes all threads; otherwise those that sleep only where that pays */
    bool learns;          /* what earlier calls took decides where it pays (host/ways.h); else in bursts only */
    bool may_stream;      /* the caller uses streaming stores too where they were quicker than ordinary ones */
    bool keeps;           /* each thread keeps to its own part, which its cache holds */
    bool streaming;       /* several threads use streaming stores */
    bool streaming_alone; /* the caller does, if no worker takes part */
    bool narrow;          /* uses simd->narrower, if there is one and the component gains by it */
    size_t block;         /* components a thread takes at a time */
    const struct host_alone *alone; /* NULL, or who adds where wakes is false and no worker takes part. Borrowed */
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

/* c = a + b over n components. c may be a or b; it overlaps neither in part, nor any operand of another addition in the
 * batch. */
struct batch_add {
    const void *a, *b;
    void *c;
    size_t n;
    enum component component;
};

#endif
