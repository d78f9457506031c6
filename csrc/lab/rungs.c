/* All rungs in order: host, device (the ladder's and the precision rungs), transfer, latency and matrix rungs. */
#include <string.h>

#include "lab/base/rung.h"

extern const struct rung *const host_rungs[];
extern const struct rung *const device_rungs[], *const precision_rungs[];
extern const struct rung *const transfer_rungs[], *const latency_rungs[];
extern const struct rung *const transpose_rungs[], *const sgemm_rungs[];

static const struct rung *const *const tables[] = {
    host_rungs, device_rungs, precision_rungs, transfer_rungs, latency_rungs, transpose_rungs, sgemm_rungs,
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
