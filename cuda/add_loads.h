/* How `tuned` (cuda/add.cu) loads the operands. */
#ifndef VECADD_CUDA_ADD_LOADS_H
#define VECADD_CUDA_ADD_LOADS_H

enum add_loads {
    LOADS_PLAIN,
    LOADS_EVICT_LAST, /* asks the L2 to keep what is read until all else is gone, so that the writes of c go out in
                       * longer runs; on compute capability 9.0, plain elsewhere */
};

#endif
