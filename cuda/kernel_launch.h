/* The description of a launch that is not made. */
#ifndef VECADD_CUDA_KERNEL_LAUNCH_H
#define VECADD_CUDA_KERNEL_LAUNCH_H

#include <stddef.h>

/* Initialise to {0}. The first launch fills in its shape; every launch is counted. */
struct kernel_launch {
    const void *function;       /* the kernel's handle for the CUDA runtime; NULL: nothing would be queued */
    unsigned grid[3], block[3]; /* x, y, z: blocks, and threads a block */
    size_t shared;              /* dynamic shared memory, bytes a block */
    unsigned launches;
};

#endif
