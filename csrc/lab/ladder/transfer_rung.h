/* What the transfer rungs share: host arrays up, a device rung's kernel, the sum down.
 *
 * The documents time the making of arrays and streams with the rest, or not, and compare kernels: both are parameters.
 * What is outside the timed part is taken from the pool, which keeps memory mapped; what is inside is cudaMalloc's. */
#ifndef VECADD_LAB_LADDER_TRANSFER_RUNG_H
#define VECADD_LAB_LADDER_TRANSFER_RUNG_H

#include <stdbool.h>
#include <stddef.h>

#include <cuda_runtime_api.h>

#include "gpu/state.h"
#include "lab/base/rung.h"
#include "lab/ladder/timeline.h"

enum { EVERY_COMPONENT = (1 << COMPONENT_COUNT) - 1 };

/* A transfer rung that launches a rung's kernel has it first of its parameters, and this second where it has it. */
enum { PARAM_KERNEL = 0, PARAM_ALLOCATES = 1 };

#define KERNEL_PARAM(usual)                                                                                            \
    {                                                                                                                  \
        "kernel", transfer_kernel_what, 0, usual, KERNEL_GRID_STRIDE, transfer_kernel_names                            \
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
    KERNEL_GRID_STRIDE
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
    double seconds; /* of it; from its end on */
    bool entered;   /* the scope is to be left */
};

/* Refuses what the kernel and the rung do not take and goes onto the device. Pairs with transfer_run_leave, after a
 * failure too. */
int transfer_run_enter(struct transfer_run *run, const struct rung *rung, const struct rung_call *call,
                       struct status *status);

/* Leaves the device, closes the call's timeline, and gives the call its seconds where `result` is 0. Returns `result`,
 * or -1 with *status set where the timeline failed. */
int transfer_run_leave(struct transfer_run *run, int result, struct status *status);

/* The timed part. */
void transfer_clock_start(struct transfer_run *run);
void transfer_clock_stop(struct transfer_run *run);

/* Queues one chunk: up, sum, down, in the order of `stream`, number `number` of the rung's. */
struct transfer_chunk {
    const void *a, *b; /* on the host, `count` components each */
    void *c;
    void *device[3]; /* for the same components of a, b and c */
    size_t count, number;
    cudaStream_t stream;
    int stream_number;
    bool blocking; /* cudaMemcpy in place of cudaMemcpyAsync: on the legacy default stream */
};
int transfer_chunk_queue(const struct transfer_run *run, const struct transfer_chunk *chunk, struct status *status);

/* Queues the run's kernel alone. */
int transfer_kernel_queue(const struct transfer_run *run, const void *a, const void *b, void *c, size_t count,
                          cudaStream_t stream, int stream_number, size_t chunk, struct status *status);

/* Whether the kernel adds to what c holds. */
bool transfer_kernel_accumulates(const struct transfer_run *run);

#endif
