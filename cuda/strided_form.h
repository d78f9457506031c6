/* Which kernel of cuda/strided*.cu runs an addition of any layout. */
#ifndef VECADD_CUDA_STRIDED_FORM_H
#define VECADD_CUDA_STRIDED_FORM_H

#include "base/strided.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The name of that kernel, of the first launch if it takes several: "number", "tiles", "turned", "same_dtype", "mixed"
 * or "general". a, b and c point to first elements; NULL counts as aligned, like new memory. */
const char *strided_form_name(const struct strided *add, const void *a, const void *b, const void *c);

#ifdef __cplusplus
}
#endif

#endif
