/* Elements of one dtype as elements of a wider one, as NumPy casts them. */
#ifndef VECADD_HOST_CONVERT_H
#define VECADD_HOST_CONVERT_H

#include <stddef.h>

#include "base/dtype.h"

/* n elements, side by side and aligned on both sides. A complex number made of a real one has +0 for its imaginary
 * part. */
typedef void convert_function(const void *from, void *to, size_t n);

/* NULL where the dtypes are the same, where one is a 16-bit float, and where NumPy's promotion never asks for it. */
convert_function *convert_for(enum dtype from, enum dtype to);

#endif
