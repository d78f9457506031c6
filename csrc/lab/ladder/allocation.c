/* The transfer rungs that allocate their device arrays in each call: by cudaMalloc, which maps and unmaps memory and
 * waits for the device, and from a stream-ordered pool, which keeps freed memory. */
#include "lab/ladder/copies.h"

extern const struct rung rung_malloc_each_call, rung_pool;

static int
run_malloc_each_call(const struct rung_call *call, struct status *status)
{
    static const struct copies how = {.rung = &rung_malloc_each_call, .streams = 1, .arrays = ARRAYS_MALLOC_EACH_CALL};
    return copies_run(&how, call, status);
}

static int
run_pool(const struct rung_call *call, struct status *status)
{
    static const struct copies how = {.rung = &rung_pool, .streams = 1, .arrays = ARRAYS_POOL_EACH_CALL};
    return copies_run(&how, call, status);
}

const struct rung rung_malloc_each_call = {
    .name = "malloc_each_call",
    .kind = RUNG_TRANSFER,
    .after = "stream1_pinned",
    .changes = "cudaMalloc and cudaFree of three arrays around every addition",
    .tested = "double",
    .stages = STAGES_SERIAL,
    .memory = RUNG_MEMORY_PINNED,
    .allocates = true,
    .components = EVERY_COMPONENT,
    .params = {KERNEL_PARAM(KERNEL_NAIVE)},
    .run = run_malloc_each_call,
};

const struct rung rung_pool = {
    .name = "pool",
    .kind = RUNG_TRANSFER,
    .after = "malloc_each_call",
    .changes = "the three arrays from a stream-ordered pool, which keeps what is freed for the next call",
    .tested = "double",
    .stages = STAGES_SERIAL,
    .memory = RUNG_MEMORY_PINNED,
    .allocates = true,
    .components = EVERY_COMPONENT,
    .params = {KERNEL_PARAM(KERNEL_NAIVE)},
    .run = run_pool,
};
