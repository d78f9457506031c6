/* The device rungs, in the order in which one leads to the next. */
#include "lab/base/rung.h"

#define DEVICE_RUNGS(RUNG)                                                                                             \
    RUNG(single_thread)                                                                                                \
    RUNG(single_block_chunked)                                                                                         \
    RUNG(single_block)                                                                                                 \
    RUNG(grid_stride)                                                                                                  \
    RUNG(block_range)                                                                                                  \
    RUNG(naive)                                                                                                        \
    RUNG(restrict)                                                                                                     \
    RUNG(coarsen2)                                                                                                     \
    RUNG(coarsen4)                                                                                                     \
    RUNG(unroll2)                                                                                                      \
    RUNG(unroll4)                                                                                                      \
    RUNG(float2)                                                                                                       \
    RUNG(float2_unroll2)                                                                                               \
    RUNG(float4)                                                                                                       \
    RUNG(float4_float2)                                                                                                \
    RUNG(float4_arg)                                                                                                   \
    RUNG(float4_unroll2)                                                                                               \
    RUNG(async_copy)                                                                                                   \
    RUNG(bulk_copy)                                                                                                    \
    RUNG(bulk_tensor_copy)                                                                                             \
    RUNG(chunked)                                                                                                      \
    RUNG(strided)                                                                                                      \
    RUNG(offset)                                                                                                       \
    RUNG(divergent)                                                                                                    \
    RUNG(index_dim3)                                                                                                   \
    RUNG(index_divmod)                                                                                                 \
    RUNG(block_shape)                                                                                                  \
    RUNG(race)                                                                                                         \
    RUNG(atomic)                                                                                                       \
    RUNG(tuned)                                                                                                        \
    RUNG(waves)                                                                                                        \
    RUNG(copy_device)

#define DECLARE(name)  extern const struct rung rung_##name;
#define POINT_TO(name) &rung_##name,

DEVICE_RUNGS(DECLARE)

const struct rung *const device_rungs[] = {DEVICE_RUNGS(POINT_TO) NULL};
