#include "lab/base/rung.h"

#include <string.h>

void
rung_usual_params(const struct rung *rung, struct rung_call *call)
{
    for (int i = 0; i < RUNG_PARAMS; i++)
        call->params[i] = rung->params[i].usual;
}

bool
rung_takes_component(const struct rung *rung, enum component component)
{
    return !rung->components || rung->components >> component & 1;
}

/* A rung whose float32 load is 4 bytes loads one component, whatever its size; wider loads have one width for all. */
unsigned
rung_bytes_per_load(const struct rung *rung, enum component component)
{
    const bool by_component = rung->family == FAMILY_KERNELS && rung->bytes_per_load == component_size[COMPONENT_F32];
    return by_component ? (unsigned)component_size[component] : rung->bytes_per_load;
}

enum rung_sum
rung_leaves(const struct rung *rung, const int params[RUNG_PARAMS])
{
    for (int i = 0; i < RUNG_PARAMS && rung->params[i].name; i++)
        if (strcmp(rung->params[i].name, "accumulate") == 0)
            return params[i] ? SUM_ADDED : SUM_WRITTEN;
    return rung->sum;
}
