/* The errors of operands that cannot be added. */
#ifndef VECADD_PY_CALLS_REFUSALS_H
#define VECADD_PY_CALLS_REFUSALS_H

#include "base/addition.h"
#include "base/operand.h"
#include "py/base/python.h"

/* Raises what NumPy raises for the same operands; absent ones are NULL. Returns -1. */
int raise_refusal(enum refusal refusal, const struct addition *addition,
                  const struct operand *const operands[LAYOUT_OPERANDS]);

#endif
