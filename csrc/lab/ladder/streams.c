/* The transfer rungs that overlap: chunks on several streams, so that both directions of the link work at once. */
#include "lab/ladder/copies.h"

extern const struct rung rung_streams2, rung_streams4, rung_streams4_pageable;

/* 4 Mi elements, 16 MiB of float32. */
enum { CHUNK = 1 << 22, CHUNK_PARAM = 2 };

static int
run_streams2(const struct rung_call *call, struct status *status)
{
    static const struct copies how = {.rung = &rung_streams2, .streams = 2, .chunk_param = CHUNK_PARAM};
    return copies_run(&how, call, status);
}

static int
run_streams4(const struct rung_call *call, struct status *status)
{
    static const struct copies how = {.rung = &rung_streams4, .streams = 4, .streams_inside = true};
    return copies_run(&how, call, status);
}

static int
run_streams4_pageable(const struct rung_call *call, struct status *status)
{
    static const struct copies how = {.rung = &rung_streams4_pageable, .streams = 4, .streams_inside = true};
    return copies_run(&how, call, status);
}

const struct rung rung_streams2 = {
    .name = "streams2",
    .kind = RUNG_TRANSFER,
    .after = "pinned",
    .changes = "chunks on two streams in turn, three buffers a stream: while one comes down, the other goes up",
    .tested = "double",
    .stages = STAGES_OVERLAPPING,
    .memory = RUNG_MEMORY_PINNED,
    .components = EVERY_COMPONENT,
    .params = {KERNEL_PARAM(KERNEL_FLOAT4),
               ALLOCATES_PARAM(1),
               {"chunk", "elements a chunk; a complex one counts twice", 1 << 10, CHUNK, 1 << 28}},
    .run = run_streams2,
};

const struct rung rung_streams4 = {
    .name = "streams4",
    .kind = RUNG_TRANSFER,
    .after = "stream1_pinned",
    .changes = "a quarter on each of four streams, which are made inside the timed part",
    .tested = "double",
    .stages = STAGES_OVERLAPPING,
    .memory = RUNG_MEMORY_PINNED,
    .allocates = true,
    .components = EVERY_COMPONENT,
    .params = {KERNEL_PARAM(KERNEL_NAIVE), ALLOCATES_PARAM(0)},
    .run = run_streams4,
};

const struct rung rung_streams4_pageable = {
    .name = "streams4_pageable",
    .kind = RUNG_TRANSFER,
    .after = "streams4",
    .changes = "ordinary memory: a copy that is called asynchronous waits all the same (control)",
    .tested = "double",
    .stages = STAGES_SERIAL,
    .memory = RUNG_MEMORY_PAGEABLE,
    .allocates = true,
    .components = EVERY_COMPONENT,
    .params = {KERNEL_PARAM(KERNEL_NAIVE), ALLOCATES_PARAM(0)},
    .run = run_streams4_pageable,
};
