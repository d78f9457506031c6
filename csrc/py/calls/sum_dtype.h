/* The dtype of a sum of device arrays and numbers. */
#ifndef VECADD_PY_CALLS_SUM_DTYPE_H
#define VECADD_PY_CALLS_SUM_DTYPE_H

#include "py/calls/arguments.h"
#include "py/calls/prepared_call.h"
#include "py/operands/promotion.h"

/* Finds it by the arrays' library's rules where all arrays are that library's, else by NumPy's, and checks that out can
 * hold it. Inputs that are not held are numbers: they become operands, with their values in `numbers`. Returns 0, or -1
 * with an exception set. */
int find_sum_dtype(struct module_state *state, const struct add_arguments *arguments, struct prepared_call *call,
                   struct scalar numbers[ROLE_OUT]);

#endif
