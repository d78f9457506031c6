/* Numbers that stand for an operand. */
#ifndef VECADD_BASE_SCALAR_H
#define VECADD_BASE_SCALAR_H

#include <stdbool.h>

#include "base/dtype.h"

/* Makes of a number of dtype `from` (bool, float64 or complex128: Python's own) the same as an element of a dtype that
 * it promotes to: the nearest, ties to even, whatever rounding the caller has set, and no flag is raised. An element
 * has room for 16 bytes. False, and it stays as it is, for the other dtypes. */
bool scalar_convert(unsigned char *element, enum dtype from, enum dtype to);

#endif
