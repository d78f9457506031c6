/* What was current in a thread before a device was made so, to go back to. */
#ifndef VECADD_GPU_BEFORE_H
#define VECADD_GPU_BEFORE_H

#include <stdbool.h>

struct device_before {
    bool changed;
    void *context; /* the driver's (CUcontext), NULL for none */
};

#endif
