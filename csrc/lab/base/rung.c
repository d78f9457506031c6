#include "lab/base/rung.h"

void
rung_usual_params(const struct rung *rung, struct rung_call *call)
{
    for (int i = 0; i < RUNG_PARAMS; i++)
        call->params[i] = rung->params[i].usual;
}

/* Where a float32 rung loads 4 bytes, it loads a lane; wider loads are as wide for every lane. */
unsigned
rung_bytes_per_load(const struct rung *rung, enum lane lane)
{
    const bool by_lane = rung->family == FAMILY_KERNELS && rung->bytes_per_load == lane_size[LANE_F32];
    return by_lane ? (unsigned)lane_size[lane] : rung->bytes_per_load;
}
