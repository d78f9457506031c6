/* An addition of any layout and of any dtypes, for cuda/strided.cu: what `tuned` cannot do. */
#ifndef VECADD_BASE_STRIDED_H
#define VECADD_BASE_STRIDED_H

#include <stdbool.h>

#include "base/dtype.h"
#include "base/layout.h"

enum { MAX_ITEMSIZE = 16 };

struct strided {
    enum dtype dtype[LAYOUT_OPERANDS]; /* a's, b's and out's own */
    enum dtype sum;                    /* a and b are converted to it, added in it, and the sum then to out's */
    bool is_scalar[LAYOUT_SUM];        /* a or b is the element below and has no memory. In the sum's own dtype where it
                                        * can be: operands that are alike are added by a quicker kernel */
    struct layout layout;
    unsigned char scalar[LAYOUT_SUM][MAX_ITEMSIZE]; /* behind `layout`, whose alignment suits every component */
};

#endif
