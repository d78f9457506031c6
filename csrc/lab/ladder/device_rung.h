/* One launch of a device rung: timed, or described without being made. */
#ifndef VECADD_LAB_LADDER_DEVICE_RUNG_H
#define VECADD_LAB_LADDER_DEVICE_RUNG_H

#include "base/status.h"
#include "cuda/facts.h"
#include "lab/base/rung.h"

/* Launches a device rung on call->device in the order of call->stream, waits for it, and gives the seconds between CUDA
 * events on both sides of the launch. Refuses operands less aligned than the rung asks for,
 * and a device below its compute capability. */
int rung_time_on_device(const struct rung *rung, const struct rung_call *call, double *seconds, struct status *status);

/* Refuses a device below the rung's compute capability, where its kernel is empty. */
int rung_check_capability(const struct rung *rung, int device, struct status *status);

/* What a device rung's launch would take of the device, without making it. */
struct rung_facts {
    struct kernel_launch launch; /* the rung's first launch; launches == 0: none, and all else is 0 */
    int registers;               /* a thread's */
    size_t static_shared;        /* bytes a block */
    size_t local;                /* bytes a thread */
    int active_blocks;           /* that fit on a multiprocessor at once */
    double occupancy;            /* warps of the active blocks over the most that fit on a multiprocessor: 0 to 1 */
    double waves;                /* the grid's blocks over the blocks that fit on the device at once */
};

/* Reads component, n, block and params of the call, and call->device; of a, b and c only the alignment counts, and
 * nothing is read or written there. Refuses a device below the rung's compute capability, and blocks that do not fit on
 * a multiprocessor. Returns 0, or -1 with *status set. */
int rung_facts(const struct rung *rung, const struct rung_call *call, struct rung_facts *facts, struct status *status);

#endif
