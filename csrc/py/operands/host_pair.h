/* Inputs on the host beyond contiguous arrays of one dtype and shape: slices, broadcast arrays, numbers, two dtypes. */
#ifndef VECADD_PY_OPERANDS_HOST_PAIR_H
#define VECADD_PY_OPERANDS_HOST_PAIR_H

#include "py/operands/operand_from.h"

struct host_sum {
    enum dtype dtype;
    PyArray_Descr *descr; /* owned: NumPy's choice of long and long long, which vecadd treats as one */
};

/* Describes a and b, of which a number becomes a 0-d array, and finds the sum's dtype as numpy.add does. Returns NULL,
 * and the caller clears *sum and both operands; or, with nothing to clear, a short reason why NumPy has to add them,
 * for example that their sum has fewer than `least` bytes. An exception is then set where clear_refusal() leaves one.
 */
const char *host_pair_from(struct module_state *state, PyObject *const objects[ROLE_COUNT], npy_intp least,
                           struct owned_operand operands[ROLE_COUNT], struct host_sum *sum);

/* Describes out; false where it is no plain ndarray of a dtype that vecadd adds. */
bool host_out_from(struct module_state *state, PyObject *object, struct owned_operand *operand);

#endif
