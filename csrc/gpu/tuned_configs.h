/* The launch configs of a device: the build's, and those tuned on it. */
#ifndef VECADD_GPU_TUNED_CONFIGS_H
#define VECADD_GPU_TUNED_CONFIGS_H

#include "base/status.h"
#include "gpu/launch_configs.h"

/* "GPU-<UUID> driver 13000": the key of a device's tuned launch configs. Returns 0, or -1 with *status set. */
int device_key(int device, char key[DEVICE_KEY], struct status *status);

/* The build's launch configs for a device. Returns 0, or -1 with *status set. */
int launch_configs_of_build(struct launch_configs *launch_configs, int device, struct status *status);

/* The launch configs tuned on the device if any, else the build's. Reads a file. */
int launch_configs_find(struct launch_configs *launch_configs, int device, struct status *status);

#endif
