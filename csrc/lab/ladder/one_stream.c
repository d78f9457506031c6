/* The transfer rungs whose stages run one after the other: upload, kernel, download. They differ in the kind of host
 * memory and in where the host waits. */
#include "lab/ladder/copies.h"

extern const struct rung rung_pageable, rung_pinned, rung_pinned_reused, rung_stream1_pinned, rung_copy_blocking,
    rung_copy_async, rung_copy_stream;

static int
run_pageable(const struct rung_call *call, struct status *status)
{
    static const struct copies how = {.rung = &rung_pageable, .blocking = true};
    return copies_run(&how, call, status);
}

static int
run_pinned(const struct rung_call *call, struct status *status)
{
    static const struct copies how = {.rung = &rung_pinned, .blocking = true};
    return copies_run(&how, call, status);
}

static int
run_pinned_reused(const struct rung_call *call, struct status *status)
{
    static const struct copies how = {.rung = &rung_pinned_reused, .blocking = true, .arrays = ARRAYS_KEPT};
    return copies_run(&how, call, status);
}

static int
run_stream1_pinned(const struct rung_call *call, struct status *status)
{
    static const struct copies how = {.rung = &rung_stream1_pinned, .streams = 1};
    return copies_run(&how, call, status);
}

static int
run_copy_blocking(const struct rung_call *call, struct status *status)
{
    static const struct copies how = {.rung = &rung_copy_blocking, .blocking = true};
    return copies_run(&how, call, status);
}

static int
run_copy_async(const struct rung_call *call, struct status *status)
{
    static const struct copies how = {.rung = &rung_copy_async, .device_wait = true};
    return copies_run(&how, call, status);
}

static int
run_copy_stream(const struct rung_call *call, struct status *status)
{
    static const struct copies how = {.rung = &rung_copy_stream, .streams = 1};
    return copies_run(&how, call, status);
}

const struct rung rung_pageable = {
    .name = "pageable",
    .kind = RUNG_TRANSFER,
    .changes = "ordinary memory, blocking copies, one kernel",
    .tested = "double",
    .stages = STAGES_SERIAL,
    .memory = RUNG_MEMORY_PAGEABLE,
    .components = EVERY_COMPONENT,
    .params = {KERNEL_PARAM(KERNEL_NAIVE), ALLOCATES_PARAM(1)},
    .run = run_pageable,
};

const struct rung rung_pinned = {
    .name = "pinned",
    .kind = RUNG_TRANSFER,
    .after = "pageable",
    .changes = "page-locked memory: the link reads it where it lies, no copy into a staging buffer",
    .tested = "double",
    .stages = STAGES_SERIAL,
    .memory = RUNG_MEMORY_PINNED,
    .components = EVERY_COMPONENT,
    .params = {KERNEL_PARAM(KERNEL_NAIVE), ALLOCATES_PARAM(1)},
    .run = run_pinned,
};

const struct rung rung_pinned_reused = {
    .name = "pinned_reused",
    .kind = RUNG_TRANSFER,
    .after = "pinned",
    .changes = "device arrays kept from run to run: nothing is allocated in the timed part",
    .tested = "double",
    .stages = STAGES_SERIAL,
    .memory = RUNG_MEMORY_PINNED,
    .components = EVERY_COMPONENT,
    .params = {KERNEL_PARAM(KERNEL_NAIVE)},
    .run = run_pinned_reused,
};

const struct rung rung_stream1_pinned = {
    .name = "stream1_pinned",
    .kind = RUNG_TRANSFER,
    .after = "pinned_reused",
    .changes = "asynchronous copies on one stream: still one after the other, so nothing is gained (control)",
    .tested = "double",
    .stages = STAGES_SERIAL,
    .memory = RUNG_MEMORY_PINNED,
    .components = EVERY_COMPONENT,
    .params = {KERNEL_PARAM(KERNEL_NAIVE), ALLOCATES_PARAM(0)},
    .run = run_stream1_pinned,
};

const struct rung rung_copy_blocking = {
    .name = "copy_blocking",
    .kind = RUNG_TRANSFER,
    .after = "pageable",
    .changes = "a function that allocates, copies, adds, copies back and frees: blocking, default stream",
    .tested = "double",
    .stages = STAGES_SERIAL,
    .memory = RUNG_MEMORY_PAGEABLE,
    .components = EVERY_COMPONENT,
    .params = {KERNEL_PARAM(KERNEL_NAIVE), ALLOCATES_PARAM(1)},
    .run = run_copy_blocking,
};

const struct rung rung_copy_async = {
    .name = "copy_async",
    .kind = RUNG_TRANSFER,
    .after = "copy_blocking",
    .changes = "asynchronous copies on the default stream, one wait for the device at the end",
    .tested = "double",
    .stages = STAGES_SERIAL,
    .memory = RUNG_MEMORY_PAGEABLE,
    .components = EVERY_COMPONENT,
    .params = {KERNEL_PARAM(KERNEL_NAIVE), ALLOCATES_PARAM(1)},
    .run = run_copy_async,
};

const struct rung rung_copy_stream = {
    .name = "copy_stream",
    .kind = RUNG_TRANSFER,
    .after = "copy_async",
    .changes = "the same on a stream made for the call, and a wait for that stream alone",
    .tested = "double",
    .stages = STAGES_SERIAL,
    .memory = RUNG_MEMORY_PAGEABLE,
    .components = EVERY_COMPONENT,
    .params = {KERNEL_PARAM(KERNEL_NAIVE), ALLOCATES_PARAM(1)},
    .run = run_copy_stream,
};
