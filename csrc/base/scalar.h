/* Python numbers as operands. */
#ifndef VECADD_BASE_SCALAR_H
#define VECADD_BASE_SCALAR_H

#include <stdbool.h>

#include "base/dtype.h"

/* Converts *element in place from a Python number's dtype (bool, float64 or complex128) to a dtype that it promotes to.
 * Rounds to nearest, ties to even, under any rounding mode, and raises no flag. A float32 becomes a float of 16 bits
 * that has its value. `element` has room for 16 bytes. For all others returns false and leaves it unchanged. */
bool scalar_convert(unsigned char *element, enum dtype from, enum dtype to);

#endif
