/* From Python's arrays to the call of a matrix rung. */
#ifndef VECADD_PY_LAB_MATRIX_ARGUMENTS_H
#define VECADD_PY_LAB_MATRIX_ARGUMENTS_H

#include "lab/base/rung.h"
#include "py/operands/operand_from.h"

/* Fills in the operands, and of the call the component and the extents. An operand that the rung does not have is a's
 * double. Returns 0, or -1 with the exception that run_rung documents. */
int matrices_from(struct module_state *state, const struct rung *rung, PyObject *const objects[ROLE_COUNT],
                  struct operand operands[ROLE_COUNT], struct rung_call *call);

/* The extents of a matrix rung's call from a tuple of whole numbers. Returns 0, or -1 with an exception. */
int matrix_shape_from(const struct rung *rung, PyObject *shape, struct rung_call *call);

#endif
