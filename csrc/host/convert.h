/* Conversions of elements to a wider dtype, as NumPy casts them. */
#ifndef VECADD_HOST_CONVERT_H
#define VECADD_HOST_CONVERT_H

#include <stddef.h>

#include "base/dtype.h"

/* Converts n elements; both arrays are contiguous and aligned. A real number becomes a complex one with imaginary part
 * +0. */
typedef void convert_function(const void *from, void *to, size_t n);

/* NULL if the dtypes are equal, if one is a 16-bit float, or if NumPy's promotion never needs the conversion. */
convert_function *convert_for(enum dtype from, enum dtype to);

#endif
