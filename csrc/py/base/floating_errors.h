/* Reports the floating-point flags of an addition as NumPy does. */
#ifndef VECADD_PY_BASE_FLOATING_ERRORS_H
#define VECADD_PY_BASE_FLOATING_ERRORS_H

#include "base/dtype.h"
#include "py/base/python.h"

/* Warns, raises or calls as np.errstate asks. Returns 0, or -1 with an exception set. */
static inline int
give_floating_errors(unsigned flags)
{
    if (!flags)
        return 0;
    return PyUFunc_GiveFloatingpointErrors("add", (flags & FP_OVERFLOW ? NPY_FPE_OVERFLOW : 0) |
                                                      (flags & FP_INVALID ? NPY_FPE_INVALID : 0) |
                                                      (flags & FP_UNDERFLOW ? NPY_FPE_UNDERFLOW : 0));
}

#endif
