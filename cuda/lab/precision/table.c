/* The precision rungs: founding document 001's, in its order. They are compared with naive and float4 of float32. */
#include "lab/base/rung.h"

#define PRECISION_RUNGS(RUNG)                                                                                          \
    RUNG(half)                                                                                                         \
    RUNG(half2)                                                                                                        \
    RUNG(half2_hadd2)                                                                                                  \
    RUNG(half8)                                                                                                        \
    RUNG(half8_pack)

#define DECLARE(name)  extern const struct rung rung_##name;
#define POINT_TO(name) &rung_##name,

PRECISION_RUNGS(DECLARE)

const struct rung *const precision_rungs[] = {PRECISION_RUNGS(POINT_TO) NULL};
