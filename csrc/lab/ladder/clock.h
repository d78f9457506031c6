/* The clock of the device rungs, and whether a device can run a rung. */
#ifndef VECADD_LAB_LADDER_CLOCK_H
#define VECADD_LAB_LADDER_CLOCK_H

#include "lab/base/rung.h"

/* Launches a device rung on call->device in the order of call->stream, waits for it, and gives the seconds between CUDA
 * events on both sides of the launch. Refuses operands less aligned than the rung asks for,
 * and a device below its compute capability. */
int rung_time_on_device(const struct rung *rung, const struct rung_call *call, double *seconds, struct status *status);

/* Refuses a device below the rung's compute capability, where its kernel is empty. */
int rung_check_capability(const struct rung *rung, int device, struct status *status);

#endif
