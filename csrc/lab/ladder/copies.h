/* The transfer rungs that are copies and kernels on streams, and differ in memory, streams, chunks and allocation. */
#ifndef VECADD_LAB_LADDER_COPIES_H
#define VECADD_LAB_LADDER_COPIES_H

#include "lab/ladder/transfer_rung.h"

enum copies_arrays {
    ARRAYS_AS_ASKED,         /* the parameter `allocates` says whether they are made inside the timed part */
    ARRAYS_KEPT,             /* never inside */
    ARRAYS_MALLOC_EACH_CALL, /* always inside, by cudaMalloc */
    ARRAYS_POOL_EACH_CALL    /* always inside, from the stream-ordered pool */
};

enum { COPIES_STREAMS = 4 };

struct copies {
    const struct rung *rung;
    int streams;         /* made for the run, at most COPIES_STREAMS; 0: the legacy default stream */
    bool blocking;       /* copies wait: for the legacy default stream */
    bool device_wait;    /* waits for the device at the end, not for the streams */
    bool streams_inside; /* streams are made inside the timed part wherever the arrays are */
    enum copies_arrays arrays;
    int chunk_param; /* the parameter that gives the components of a chunk; each stream has buffers for one. 0: no such
                      * parameter; each stream takes an equal part of arrays as long as the operands */
};

/* Runs the rung. Returns 0, or -1 with *status set. Leaves nothing queued or allocated. */
int copies_run(const struct copies *copies, const struct rung_call *call, struct status *status);

#endif
