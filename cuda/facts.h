/* What code may know of the kernels without CUDA's headers: how a launch looks, and which kernel takes an addition. */
#ifndef VECADD_CUDA_FACTS_H
#define VECADD_CUDA_FACTS_H

#include <stddef.h>

#include "base/layout.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the kernel `tuned` (cuda/add.cu) loads the operands. */
enum add_loads {
    LOADS_PLAIN,
    LOADS_EVICT_LAST, /* asks the L2 to evict the inputs last, so that c is written back in longer runs; on compute
                       * capability 9.0, elsewhere plain loads */
};

/* The description of a launch that is not made. Initialise to {0}. The first launch fills in its shape; every launch is
 * counted. */
struct kernel_launch {
    const void *function;       /* the kernel's handle for the CUDA runtime; NULL: nothing would be queued */
    unsigned grid[3], block[3]; /* x, y, z: blocks, and threads a block */
    size_t shared;              /* dynamic shared memory, bytes a block */
    unsigned launches;
};

/* The name of the kernel of cuda/strided*.cu that runs an addition of any layout, of the first launch if it takes
 * several: "number", "tiles", "turned", "same_dtype", "mixed" or "general". a, b and c point to first elements; NULL
 * counts as aligned, like new memory. */
const char *strided_form_name(const struct strided *add, const void *a, const void *b, const void *c);

#ifdef __cplusplus
}
#endif
#endif
