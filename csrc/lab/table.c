/* All rungs in order: the host's, the device's with those of precision, the transfers, those of many small additions.
 */
#include <string.h>

#include "lab/rung.h"

extern const struct rung *const host_rungs[];
extern const struct rung *const device_rungs[], *const precision_rungs[];
extern const struct rung *const transfer_rungs[], *const latency_rungs[];

static const struct rung *const *const tables[] = {
    host_rungs, device_rungs, precision_rungs, transfer_rungs, latency_rungs,
};

const struct rung *
rung_at(size_t i)
{
    for (size_t table = 0; table < sizeof tables / sizeof *tables; table++)
        for (const struct rung *const *rung = tables[table]; *rung; rung++)
            if (i-- == 0)
                return *rung;
    return NULL;
}

const struct rung *
rung_named(const char *name)
{
    for (size_t i = 0; rung_at(i); i++)
        if (strcmp(rung_at(i)->name, name) == 0)
            return rung_at(i);
    return NULL;
}

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
