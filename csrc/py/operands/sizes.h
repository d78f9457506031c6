/* Shapes and strides between Python and C. */
#ifndef VECADD_PY_OPERANDS_SIZES_H
#define VECADD_PY_OPERANDS_SIZES_H

#include "py/base/python.h"

enum { MAX_DIMENSIONS = 64 }; /* of an array, as in NumPy 2 */

PyObject *tuple_of_sizes(int ndim, const Py_ssize_t *sizes);

/* Reads a tuple of at most MAX_DIMENSIONS ints; returns how many, or -1 with an exception that begins with `what`. */
int sizes_of_tuple(PyObject *tuple, const char *what, Py_ssize_t *sizes);

#endif
