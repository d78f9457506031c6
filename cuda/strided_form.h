/* Which of the kernels of cuda/strided*.cu adds an addition of any layout. */
#ifndef VECADD_CUDA_STRIDED_FORM_H
#define VECADD_CUDA_STRIDED_FORM_H

#include "base/strided.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which kernel of cuda/strided*.cu adds it, the first one where it takes several launches: "tiles", "same_dtype",
 * "mixed" or "general". Addresses of first elements; NULL is as well aligned as new memory. */
const char *strided_form_name(const struct strided *add, const void *a, const void *b, const void *c);

#ifdef __cplusplus
}
#endif

#endif
