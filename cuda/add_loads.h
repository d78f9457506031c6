/* How the kernel `tuned` (cuda/add.cu) loads the operands. */
#ifndef VECADD_CUDA_ADD_LOADS_H
#define VECADD_CUDA_ADD_LOADS_H

enum add_loads {
    LOADS_PLAIN,
    LOADS_EVICT_LAST, /* asks the L2 to evict the inputs last, so that c is written back in longer runs; on compute
                       * capability 9.0, elsewhere plain loads */
};

#endif
