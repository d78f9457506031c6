/* The only allocations made for the caller: sums that were not given an `out`. */
#ifndef VECADD_RESULT_H
#define VECADD_RESULT_H

#include "operand_from.h"

/* A new ndarray of the dtype, shape and memory order of `like`. */
PyObject *host_result(PyArrayObject *like);

/* A new array like `like`, an operand in the library of `like` where that makes one, else a DeviceArray on
 * `device`. It may be written in the order of `stream`. Its operand goes to *result, to be cleared. */
PyObject *device_result(struct module_state *state, const struct device_operand *like, int device, void *stream,
                        struct device_operand *result);

#endif
