/* The forms of the strided addition that are faster than the general kernel of strided.cu; each decides which operands
 * it takes. */
#ifndef VECADD_CUDA_STRIDED_FORMS_CUH
#define VECADD_CUDA_STRIDED_FORMS_CUH

#include <cuda_runtime_api.h>

#include "base/strided.h"

struct strided_form {
    const char *name;

    /* Whether it takes these operands, of FEW_AXES (cuda/index_map.cuh) at most; at[] are their first elements. */
    bool (*takes)(const struct strided *add, const struct layout *layout, const char *const at[]);

    /* Queues the addition, 2^31 - 1 elements at most. */
    cudaError_t (*launch)(const struct strided *add, const struct layout *layout, const char *const at[],
                          cudaStream_t stream);

    /* Loads its kernels into the current device's context. */
    cudaError_t (*load)(void);
};

extern const struct strided_form strided_number; /* one dtype; a number and contiguous arrays */
extern const struct strided_form strided_tiles;  /* one dtype; an input along another axis than the sum; in vectors */
extern const struct strided_form strided_turned; /* one dtype or two; the same, element by element */
extern const struct strided_form strided_same_dtype; /* one dtype */
extern const struct strided_form strided_mixed;      /* two dtypes, in runs along the innermost axis */

#endif
