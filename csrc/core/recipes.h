/* Which way `tuned` (cuda/add.cu) moves the bytes of a call: the one table of it. */
#ifndef VECADD_RECIPES_H
#define VECADD_RECIPES_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One way, for calls that move at least so many bytes. */
struct recipe {
    size_t min_bytes; /* of a, b and c together: dtypes that move the same bytes take the same time */
    unsigned block;   /* threads */
    enum add_loads loads;
    unsigned demoted; /* sixtieths of the L2: so much of the end of each input is demoted */
};

/* The ways of one device, by growing min_bytes; the first one's is 0. */
struct recipes {
    const struct recipe *row;
    int count;
    bool measured; /* on this compute capability; else inherited from another one */
    size_t l2;     /* bytes */
};

/* The recipes for a compute capability (90 for 9.0) with so many bytes of L2. They live as long as the process. */
struct recipes recipes_for(int capability, size_t l2);

/* Fills in block, loads and demoted of a call whose lane and n are set. */
void recipe_choose(const struct recipes *recipes, struct add_call *call);

/* device.c: the same with the current device's recipes, for who has no struct device_scope at hand. */
cudaError_t recipe_choose_on_current_device(struct add_call *call);

#ifdef __cplusplus
}
#endif
#endif
