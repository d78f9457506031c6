/* What a device rung's launch would take of the device, without making it. */
#ifndef VECADD_LAB_LADDER_FACTS_H
#define VECADD_LAB_LADDER_FACTS_H

#include "base/status.h"
#include "cuda/kernel_launch.h"
#include "lab/base/rung.h"

struct rung_facts {
    struct kernel_launch launch; /* the first; launches == 0: nothing is queued and all else is 0 */
    int registers;               /* a thread's */
    size_t static_shared;        /* bytes a block */
    size_t local;                /* bytes a thread */
    int active_blocks;           /* that a multiprocessor holds at once */
    double occupancy;            /* their warps, of as many as it can hold: 0 to 1 */
    double waves;                /* the grid's blocks, of as many as the device holds at once */
};

/* Of call->component, n, block and params on call->device; a, b and c stand for addresses as aligned as they are, and
 * nothing is read or written there. Refuses a device below the rung's compute capability, and a launch of which a
 * multiprocessor holds no block. Returns 0, or -1 with *status set. */
int rung_facts(const struct rung *rung, const struct rung_call *call, struct rung_facts *facts, struct status *status);

#endif
