/* The SGEMM rungs, in the order in which one leads to the next. */
#include "lab/base/rung.h"

#define SGEMM_RUNGS(RUNG)                                                                                              \
    RUNG(sgemm_naive)                                                                                                  \
    RUNG(sgemm_shared)                                                                                                 \
    RUNG(sgemm_tiled)                                                                                                  \
    RUNG(sgemm_tuned)

#define DECLARE(name)  extern const struct rung rung_##name;
#define POINT_TO(name) &rung_##name,

SGEMM_RUNGS(DECLARE)

const struct rung *const sgemm_rungs[] = {SGEMM_RUNGS(POINT_TO) NULL};
