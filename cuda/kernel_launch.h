/* What a launch is, where it is described and not made. */
#ifndef VECADD_CUDA_KERNEL_LAUNCH_H
#define VECADD_CUDA_KERNEL_LAUNCH_H

#include <stddef.h>

/* Begins as {0}: the first launch leaves its shape here, and every launch is counted. */
struct kernel_launch {
    const void *function;       /* the kernel, as the CUDA runtime names it; NULL: nothing would be queued */
    unsigned grid[3], block[3]; /* x, y, z: blocks, and threads a block */
    size_t shared;              /* dynamic shared memory, bytes a block */
    unsigned launches;
};

#endif
