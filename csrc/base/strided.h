/* An addition of any layout and any dtypes, for host/strided.c and cuda/strided.cu. */
#ifndef VECADD_BASE_STRIDED_H
#define VECADD_BASE_STRIDED_H

#include <stdbool.h>

#include "base/dtype.h"
#include "base/layout.h"

enum { MAX_ITEMSIZE = 16 };

struct strided {
    enum dtype dtype[LAYOUT_OPERANDS]; /* a's, b's and out's own */
    enum dtype sum; /* a and b are converted to it and added in it; the sum is then converted to out's dtype */
    bool is_scalar[LAYOUT_SUM]; /* a or b is the number in `scalar` and has no memory. In the sum's dtype if it converts
                                 * to it, because operands of one dtype take a faster kernel. A float32 beside floats of
                                 * 16 bits is not converted: they are added in float32, and the sum is rounded */
    struct layout layout;
    unsigned char scalar[LAYOUT_SUM][MAX_ITEMSIZE]; /* after `layout`, so that it is aligned for every component */
};

#endif
