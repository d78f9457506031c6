/* Adds arrays in memory of which one lies in another order than the sum, say in Fortran order beside C order. */
#ifndef VECADD_FILES_ADD_TURNED_H
#define VECADD_FILES_ADD_TURNED_H

#include <stdbool.h>

#include "base/plan.h"

/* Adds by a plan with plan->strided, schedule and simd, on one thread; adds the floating-point flags that this raises
 * to *flags. False, and nothing is done, for dtypes that the host does not convert and for sums of short rows. The
 * elements are aligned, and the sum, dense in the layout's order, overlaps no input but one that lies as it does. */
bool add_turned(const struct plan *plan, unsigned *flags);

#endif
