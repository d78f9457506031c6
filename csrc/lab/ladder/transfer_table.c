/* The transfer rungs, in the order in which one leads to the next. */
#include "lab/base/rung.h"

#define TRANSFER_RUNGS(RUNG)                                                                                           \
    RUNG(pageable)                                                                                                     \
    RUNG(pinned)                                                                                                       \
    RUNG(pinned_reused)                                                                                                \
    RUNG(stream1_pinned)                                                                                               \
    RUNG(streams2)                                                                                                     \
    RUNG(chunks_reused)                                                                                                \
    RUNG(streams4)                                                                                                     \
    RUNG(streams4_pageable)                                                                                            \
    RUNG(copy_blocking)                                                                                                \
    RUNG(copy_async)                                                                                                   \
    RUNG(copy_stream)                                                                                                  \
    RUNG(malloc_each_call)                                                                                             \
    RUNG(pool)                                                                                                         \
    RUNG(managed)                                                                                                      \
    RUNG(zero_copy)                                                                                                    \
    RUNG(staged)                                                                                                       \
    RUNG(hybrid)                                                                                                       \
    RUNG(tuned_transfer)

#define DECLARE(name)  extern const struct rung rung_##name;
#define POINT_TO(name) &rung_##name,

TRANSFER_RUNGS(DECLARE)

const struct rung *const transfer_rungs[] = {TRANSFER_RUNGS(POINT_TO) NULL};
