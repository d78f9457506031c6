/* The only place that chooses: two operands and an out become a route and all that the route needs. */
#ifndef VECADD_BASE_ADDITION_H
#define VECADD_BASE_ADDITION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/operand.h"
#include "base/status.h"
#include "gpu/strided.h"
#include "host/add.h"

enum route { ROUTE_HOST, ROUTE_TRANSFER, ROUTE_HYBRID, ROUTE_DEVICE };

/* What the caller asked for beside the operands. */
struct plan_request {
    bool on_device;  /* device="cuda...": host operands go through the GPU */
    bool hybrid;     /* device="hybrid": processor and GPU share them */
    bool open;       /* neither, nor device="cpu": the fastest that was measured */
    int device;      /* of on_device: that ordinal, or -1: the thread's current device */
    bool has_stream; /* stream= was given */
    void *stream;
};

struct plan {
    enum route route;
    enum lane lane;
    size_t n; /* lanes, not elements: twice the elements for complex */
    const void *a, *b;
    void *c;
    const struct host_simd *simd;  /* ROUTE_HOST, ROUTE_HYBRID */
    struct host_schedule schedule; /* ROUTE_HOST, ROUTE_HYBRID */
    bool chosen; /* ROUTE_TRANSFER and ROUTE_HYBRID, of the caller's leave: the host makes good what the GPU fails at */
    const struct strided *strided; /* ROUTE_DEVICE: NULL for one run of lanes; else a, b and c are the addresses of
                                    * first elements, n counts elements, and lane means nothing. Borrowed */
    int device;                    /* all but ROUTE_HOST; -1: the thread's current device */
    void *stream;                  /* ROUTE_DEVICE: where the kernel runs */
    void *join[3]; /* ROUTE_DEVICE: the operands' other streams. The kernel waits for what they hold, and
                    * they wait for the kernel: memory is freed and rewritten in their order */
    int joins;
};

/* Plans c = a + b. The operands are of one dtype and one shape; they overlap wholly or, for the device, in any way.
 * Reads no element, and where the route is given makes no CUDA call; where it is open and CUDA in play it may ask the
 * driver what memory the operands lie in. It can be asked without being run. Returns 0, or -1 with *status set. */
int plan_make(struct plan *plan, const struct operand *a, const struct operand *b, const struct operand *out,
              const struct plan_request *request, struct status *status);

/* Has the plan's kernel, of ROUTE_DEVICE, come after what `stream` holds when it is run, and that after the kernel. For
 * each of the three operands once. */
void plan_join(struct plan *plan, void *stream);

/* The operand on whose stream a device addition runs without stream=; NULL where none has one. Entries may be NULL. */
const struct operand *plan_leader(const struct operand *const operands[3]);

/* Does it. The device route returns when the work is queued, the others when it is done. *fp_flags gets the
 * floating-point flags raised (0 on the device route). Returns 0, or -1 with *status set. */
int plan_run(const struct plan *plan, unsigned *fp_flags, struct status *status);

/* Whether [p, p + bytes) and [q, q + bytes) share some but not all of their bytes. */
bool plan_overlaps_in_part(const void *p, const void *q, size_t bytes);

/* "host", "transfer", "hybrid", "device". */
extern const char *const route_name[];

#endif
