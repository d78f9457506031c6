/* All rungs in order: host, device (the ladder's and the precision rungs), transfer, latency and matrix rungs. A build
 * without CUDA has the host's alone. */
#include <string.h>

#include "base/util.h"
#include "lab/base/rung.h"
#include "lab/ladder/device_rung.h"

extern const struct rung *const host_rungs[];
extern const struct rung *const device_rungs[], *const precision_rungs[];
extern const struct rung *const transfer_rungs[], *const latency_rungs[];
extern const struct rung *const transpose_rungs[], *const sgemm_rungs[];

static const struct rung *const *const tables[] = {
    host_rungs,
#if VECADD_CUDA
    device_rungs, precision_rungs, transfer_rungs, latency_rungs, transpose_rungs, sgemm_rungs,
#endif
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

int
rung_time(const struct rung *rung, struct rung_call *call, double *seconds, struct status *status)
{
#if VECADD_CUDA
    if (rung->launch)
        return rung_time_on_device(rung, call, seconds, status);
#endif
    double given = -1;
    call->seconds = &given;
    const double begin = now_seconds();
    const int failed = rung->run(rung, call, status);
    *seconds = given >= 0 ? given : now_seconds() - begin;
    return failed;
}
