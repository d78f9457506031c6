/* The device rungs, in the order in which one leads to the next. */
#include "rung.h"

extern const struct rung rung_naive, rung_float4, rung_tuned;

const struct rung *const device_rungs[] = {
    &rung_naive,
    &rung_float4,
    &rung_tuned,
    NULL,
};
