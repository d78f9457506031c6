/* The only allocations made for the caller: sums that were not given an `out`. */
#ifndef VECADD_PY_CALLS_RESULT_H
#define VECADD_PY_CALLS_RESULT_H

#include "py/operands/operand_from.h"

/* A new ndarray; a large one lies in the pool for sums. `dtype` is borrowed. */
PyObject *host_result(const struct module_state *state, PyArray_Descr *dtype, int ndim, const npy_intp shape[],
                      bool fortran);

/* NumPy's capsule (NEP 49) of that pool's allocator. */
PyObject *output_handler_make(void);

/* A new array of the dtype, shape and order that are due, in the library of the operand `like` where that makes
 * one, else a DeviceArray on `device`. It may be written in the order of `stream`. `form` is kept by who makes many,
 * else NULL. Its operand goes to *result, to be cleared. */
PyObject *device_result(struct module_state *state, const struct owned_operand *like,
                        const struct device_shape *expected, int device, void *stream, struct tensor_form *form,
                        struct owned_operand *result);

#endif
