/* How `tuned` (cuda/add.cu) moves the bytes of a call: the one table of it, and the rows that `vecadd tune` puts
 * in its place on one machine. */
#ifndef VECADD_GPU_LAUNCH_CONFIGS_H
#define VECADD_GPU_LAUNCH_CONFIGS_H

#include <stdbool.h>
#include <stddef.h>

#include "cuda/facts.h"

#ifdef __cplusplus
extern "C" {
#endif

struct add_call;
struct cudaDeviceProp;

/* The config of calls that move at least min_bytes. */
struct launch_config {
    size_t min_bytes; /* of a, b and c together: dtypes that move the same bytes take the same time */
    unsigned block;   /* threads */
    enum add_loads loads;
    unsigned demoted; /* sixtieths of the L2: how much of the end of each input is demoted */
};

enum launch_configs_source {
    LAUNCH_CONFIGS_MEASURED,  /* of the build, measured on this compute capability */
    LAUNCH_CONFIGS_INHERITED, /* of the build, measured on another one */
    LAUNCH_CONFIGS_TUNED,     /* measured on this device, by vecadd tune */
};

enum { LAUNCH_CONFIGS_MAX = 16 };
enum { DEVICE_KEY = 80 };

/* The configs of one device, by growing min_bytes; the first one's is 0. */
struct launch_configs {
    struct launch_config row[LAUNCH_CONFIGS_MAX];
    int count;
    enum launch_configs_source source;
    size_t l2; /* bytes */
};

/* The build's launch configs for a compute capability (90 for 9.0) and an L2 of `l2` bytes. */
struct launch_configs launch_configs_shipped(int capability, size_t l2);

/* "GPU-<UUID> driver 13000": the key of a device's tuned launch configs. */
void device_key(const struct cudaDeviceProp *properties, char key[DEVICE_KEY]);

/* Replaces *launch_configs by the key's tuned file ("recipes" of tuned_file.h: recipe MIN_BYTES BLOCK LOADS DEMOTED).
 * Without such a file, or with a row that no kernel can run, nothing changes. */
void launch_configs_read_tuned(struct launch_configs *launch_configs, const char *key);

/* Sets the block, loads and demoted of a call whose component and n are set. */
void launch_config_choose(const struct launch_configs *launch_configs, struct add_call *call);

/* In device.c: launch_config_choose by the current device's configs, for callers without a struct device_scope. Returns
 * a cudaError_t. */
int launch_config_choose_on_current_device(struct add_call *call);

#ifdef __cplusplus
}
#endif
#endif
