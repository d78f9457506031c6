/* The transpose rungs, in the order in which one leads to the next. */
#include "lab/base/rung.h"

#define TRANSPOSE_RUNGS(RUNG)                                                                                          \
    RUNG(transpose_copy)                                                                                               \
    RUNG(transpose_copy_float4)                                                                                        \
    RUNG(transpose_memcpy)                                                                                             \
    RUNG(transpose_naive)                                                                                              \
    RUNG(transpose_shared)                                                                                             \
    RUNG(transpose_padded)

#define DECLARE(name)  extern const struct rung rung_##name;
#define POINT_TO(name) &rung_##name,

TRANSPOSE_RUNGS(DECLARE)

const struct rung *const transpose_rungs[] = {TRANSPOSE_RUNGS(POINT_TO) NULL};
