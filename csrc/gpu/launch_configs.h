/* Which way `tuned` (cuda/add.cu) moves the bytes of a call: the one table of it, and what `vecadd tune` puts in its
 * place on one machine. */
#ifndef VECADD_GPU_LAUNCH_CONFIGS_H
#define VECADD_GPU_LAUNCH_CONFIGS_H

#include <stdbool.h>
#include <stddef.h>

#include "cuda/add_loads.h"

#ifdef __cplusplus
extern "C" {
#endif

struct add_call;

/* One way, for calls that move at least so many bytes. */
struct recipe {
    size_t min_bytes; /* of a, b and c together: dtypes that move the same bytes take the same time */
    unsigned block;   /* threads */
    enum add_loads loads;
    unsigned demoted; /* sixtieths of the L2: so much of the end of each input is demoted */
};

enum recipes_source {
    RECIPES_MEASURED,  /* of the build, on this compute capability */
    RECIPES_INHERITED, /* of the build, from another one */
    RECIPES_TUNED,     /* on this device, by vecadd tune */
};

enum { RECIPES_MOST = 16 };
enum { TUNED_KEY = 80 };

/* The ways of one device, by growing min_bytes; the first one's is 0. */
struct recipes {
    struct recipe row[RECIPES_MOST];
    int count;
    enum recipes_source source;
    size_t l2; /* bytes */
};

/* The build's recipes for a compute capability (90 for 9.0) with so many bytes of L2. */
struct recipes recipes_shipped(int capability, size_t l2);

/* Puts those of the tuned file of that key ("recipes" of tuned_file.h: recipe MIN_BYTES BLOCK LOADS DEMOTED) in their
 * place; where there is none, or one that no kernel can follow, nothing changes. */
void recipes_read_tuned(struct recipes *recipes, const char *key);

/* Fills in block, loads and demoted of a call whose lane and n are set. */
void recipe_choose(const struct recipes *recipes, struct add_call *call);

/* device_recipes.c: the same with the current device's recipes, for who has no struct device_scope at hand. Returns a
 * cudaError_t. */
int recipe_choose_on_current_device(struct add_call *call);

#ifdef __cplusplus
}
#endif
#endif
