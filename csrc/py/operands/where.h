/* The arguments device= and stream=. */
#ifndef VECADD_PY_OPERANDS_WHERE_H
#define VECADD_PY_OPERANDS_WHERE_H

#include "py/base/python.h"

enum device_choice { DEVICE_UNSAID, DEVICE_CPU, DEVICE_HYBRID, DEVICE_CUDA };

/* device=: None, "cpu", "hybrid", "cuda", "cuda:N" or N. */
int device_from_object(PyObject *object, enum device_choice *choice, int *device);

/* stream=: an int (0: the legacy default stream), or an object with __cuda_stream__, .cuda_stream, .ptr (CuPy) or
 * .handle (Numba). */
int stream_from_object(const struct module_state *state, PyObject *object, void **stream);

/* A stream handle from an int; 0 and 1, which both name the legacy default stream, become NULL. */
int stream_from_handle(PyObject *handle, const char *what, void **stream);

#endif
