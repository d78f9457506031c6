/* strided_alike.cu for strided.cu: additions whose operands all are of the sum's own dtype. */
#ifndef VECADD_STRIDED_ALIKE_CUH
#define VECADD_STRIDED_ALIKE_CUH

#include <cuda_runtime_api.h>

#include "strided.h"

/* Whether these operands, of first elements at[], are: of that dtype, and aligned to it. */
bool strided_alike_takes(const struct strided *add, const struct layout *layout, const char *const at[]);

/* Queues them, 2^31 - 1 elements at most. */
cudaError_t strided_alike_launch(const struct strided *add, const struct layout *layout, const char *const at[],
                                 cudaStream_t stream);
cudaError_t strided_alike_load(void);

#endif
