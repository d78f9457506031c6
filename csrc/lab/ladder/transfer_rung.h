/* What the transfer rungs share: uploading host arrays, a device rung's kernel, downloading the sum.
 *
 * Some founding documents time the making of arrays and streams, some do not, and they compare kernels: both are
 * parameters. Arrays made outside the timed part come from the pool, which keeps memory mapped; arrays made inside come
 * from cudaMalloc. */
#ifndef VECADD_LAB_LADDER_TRANSFER_RUNG_H
#define VECADD_LAB_LADDER_TRANSFER_RUNG_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

#include "gpu/state.h"
#include "lab/base/rung.h"
#include "lab/ladder/timeline.h"

/* Of a transfer rung that launches a device rung's kernel the first parameter is the kernel; `allocates`, where there
 * is one, is the second. */
enum { PARAM_KERNEL = 0, PARAM_ALLOCATES = 1 };

#define KERNEL_PARAM(usual)                                                                                            \
    {                                                                                                                  \
        "kernel", transfer_kernel_what, 0, usual, KERNEL_CHUNKED, transfer_kernel_names                                \
    }
#define ALLOCATES_PARAM(usual)                                                                                         \
    {                                                                                                                  \
        "allocates", transfer_allocates_what, 0, usual, 1, NULL                                                        \
    }
extern const char transfer_kernel_what[], transfer_allocates_what[];
extern const char *const transfer_kernel_names[];

enum transfer_kernel {
    KERNEL_NAIVE,
    KERNEL_RESTRICT,
    KERNEL_FLOAT4,
    KERNEL_TUNED,
    KERNEL_SINGLE_THREAD,
    KERNEL_SINGLE_BLOCK,
    KERNEL_GRID_STRIDE,
    KERNEL_CHUNKED
};

/* One run of a rung that launches a kernel. */
struct transfer_run {
    const struct rung *rung;
    const struct rung_call *call;
    const struct rung *kernel;
    struct device_scope scope;
    size_t width;   /* bytes a component */
    size_t bytes;   /* of one operand */
    double begin;   /* of the timed part, by the host's clock */
    double seconds; /* of the timed part; set at its end */
    bool entered;   /* `scope` was entered and has to be left */
};

/* Refuses operands and parameters that the kernel or the rung does not take, and makes the call's device current. Pairs
 * with transfer_run_leave, after a failure too. */
int transfer_run_enter(struct transfer_run *run, const struct rung *rung, const struct rung_call *call,
                       struct status *status);

/* Restores the device, closes the call's timeline, and sets the call's seconds where `result` is 0. Returns `result`,
 * or -1 with *status set where the timeline failed. */
int transfer_run_leave(struct transfer_run *run, int result, struct status *status);

/* Queues one chunk on `stream`: upload, kernel, download. `number` is the chunk's, `stream_number` the stream's. */
struct transfer_chunk {
    const void *a, *b; /* on the host, `count` components each */
    void *c;
    void *device[3]; /* device memory for these components of a, b and c */
    size_t count, number;
    cudaStream_t stream;
    int stream_number;
    bool blocking; /* cudaMemcpy in place of cudaMemcpyAsync: on the legacy default stream */
};
int transfer_chunk_queue(const struct transfer_run *run, const struct transfer_chunk *chunk, struct status *status);

/* The parts of transfer_chunk_queue: both uploads, the kernel, the download. */
int transfer_chunk_up(const struct transfer_run *run, const struct transfer_chunk *chunk, struct status *status);
int transfer_chunk_add(const struct transfer_run *run, const struct transfer_chunk *chunk, struct status *status);
int transfer_chunk_down(const struct transfer_run *run, const struct transfer_chunk *chunk, struct status *status);

/* Queues the run's kernel alone. */
int transfer_kernel_queue(const struct transfer_run *run, const void *a, const void *b, void *c, size_t count,
                          cudaStream_t stream, int stream_number, size_t chunk, struct status *status);

/* Waits for all that the stream has queued, after an error too: then the caller may free and change its memory. Returns
 * `result`, or -1 with *status set where only waiting failed. */
int transfer_wait(cudaStream_t stream, int result, struct status *status);

/* Whether the kernel adds to the contents of c. */
bool transfer_kernel_accumulates(const struct transfer_run *run);

/* The transfer rungs that are copies and kernels on streams, and differ in memory, streams, chunks and allocation. */
enum copies_arrays {
    ARRAYS_AS_ASKED,         /* the parameter `allocates` says whether they are made inside the timed part */
    ARRAYS_KEPT,             /* never inside */
    ARRAYS_MALLOC_EACH_CALL, /* always inside, by cudaMalloc */
    ARRAYS_POOL_EACH_CALL    /* always inside, from the stream-ordered pool */
};

enum { COPIES_STREAMS = 4 };

struct copies {
    int streams;         /* made for the run, at most COPIES_STREAMS; 0: the legacy default stream */
    bool blocking;       /* copies wait: for the legacy default stream */
    bool device_wait;    /* waits for the device at the end, not for the streams */
    bool streams_inside; /* streams are made inside the timed part wherever the arrays are */
    enum copies_arrays arrays;
    int timed_param; /* the parameter that says what is timed, an enum timed; 0: no such parameter, the whole */
    int chunk_param; /* the parameter that gives the components of a chunk; each stream has buffers for one. 0: no such
                      * parameter; each stream takes an equal part of arrays as long as the operands */
};

/* What of a transfer is timed: all of it, or each chunk's kernel, which finds its inputs where the
 * copies have left them, in memory, or in memory with the time in which its sum leaves the L2. */
enum timed { TIMED_WHOLE, TIMED_KERNELS, TIMED_COLD, TIMED_PAID };

/* The `run` of such a rung. Leaves nothing queued or allocated. */
int copies_run(const struct rung *rung, const struct rung_call *call, struct status *status);

#endif
