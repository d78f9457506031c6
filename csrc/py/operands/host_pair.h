/* Inputs on the host that are not one run of memory each: slices, what is broadcast, numbers, two dtypes. */
#ifndef VECADD_PY_OPERANDS_HOST_PAIR_H
#define VECADD_PY_OPERANDS_HOST_PAIR_H

#include "py/operands/operand_from.h"

struct host_sum {
    enum dtype dtype;
    PyArray_Descr *descr; /* owned: of long and long long, which are one to our code, NumPy's choice */
};

/* Describes a and b, of which a number becomes an array of no dimension, and finds the sum's dtype as numpy.add does.
 * Returns NULL, and *sum and both operands are to be cleared; or, without an exception and nothing to clear, in a few
 * words why NumPy has to add them: their sum surely has fewer than `least` bytes, say. */
const char *host_pair_from(struct module_state *state, PyObject *const objects[ROLE_COUNT], npy_intp least,
                           struct owned_operand operands[ROLE_COUNT], struct host_sum *sum);

/* Describes an out that may be written without a warning; false where NumPy has to look after it. */
bool host_out_from(struct module_state *state, PyObject *object, struct owned_operand *operand);

/* Whether the arrays are still where and as large as they were described: a finalizer that ran since may have resized
 * one. */
bool host_operands_stay(const struct owned_operand operands[ROLE_COUNT], const bool held[ROLE_COUNT]);

#endif
