/* The arguments that say where: device= and stream=, and the call of add as a whole. */
#ifndef VECADD_PY_CALLS_ARGUMENTS_H
#define VECADD_PY_CALLS_ARGUMENTS_H

#include <stdbool.h>

#include "py/base/python.h"
#include "py/operands/operand_from.h"

enum device_choice { DEVICE_UNSAID, DEVICE_CPU, DEVICE_HYBRID, DEVICE_CUDA };

struct add_arguments {
    PyObject *objects[ROLE_COUNT]; /* a, b and out; out is NULL where there is none */
    enum device_choice choice;
    int device;             /* of DEVICE_CUDA: the ordinal, or -1 for the thread's current device */
    PyObject *stream;       /* NULL where it is not given, or None */
    const char *numpys_own; /* the name of a keyword that only numpy.add understands; NULL: there is none */

    /* As they came, for numpy.add. */
    PyObject *const *values;
    Py_ssize_t positional;
    PyObject *keywords; /* a tuple of names, or NULL */
};

/* Sorts a call's arguments out; `function` names it in messages. All references are borrowed. */
int add_arguments_parse(const struct module_state *state, const char *function, PyObject *const *values,
                        Py_ssize_t positional, PyObject *keywords, struct add_arguments *arguments);

/* device=: None, "cpu", "hybrid", "cuda" or "cuda:N". */
int device_from_object(PyObject *object, enum device_choice *choice, int *device);

/* stream=: an int (0: the legacy default stream), or an object with __cuda_stream__, .cuda_stream, .ptr (CuPy) or
 * .handle (Numba). */
int stream_from_object(const struct module_state *state, PyObject *object, void **stream);

/* A stream handle as an int; the legacy default stream's two spellings, 0 and 1, become NULL. */
int stream_from_handle(PyObject *handle, const char *what, void **stream);

/* An attribute that need not be there: 1 with a new reference, 0, or -1 with an exception set. */
int optional_attribute(PyObject *object, PyObject *name, PyObject **value);

#endif
