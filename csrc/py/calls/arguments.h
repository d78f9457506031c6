/* The parsed arguments of a call of add. */
#ifndef VECADD_PY_CALLS_ARGUMENTS_H
#define VECADD_PY_CALLS_ARGUMENTS_H

#include <stdbool.h>

#include "py/base/python.h"
#include "py/operands/operand_from.h"
#include "py/operands/where.h"

struct add_arguments {
    PyObject *objects[ROLE_COUNT]; /* a, b and out; out is NULL where there is none */
    enum device_choice choice;
    int device;             /* for DEVICE_CUDA: the ordinal, or -1 for the thread's current device */
    PyObject *stream;       /* NULL where it is None or not given */
    const char *numpys_own; /* a keyword that only numpy.add understands; NULL: none */
    bool plans;             /* for a Plan, which keeps no gradient and is not traced */

    /* As passed, for numpy.add. */
    PyObject *const *values;
    Py_ssize_t positional;
    PyObject *keywords; /* a tuple of names, or NULL */
};

/* Parses a call's arguments; `function` names it in messages, `plans` is for a Plan. All references are borrowed. */
int add_arguments_parse(const struct module_state *state, const char *function, bool plans, PyObject *const *values,
                        Py_ssize_t positional, PyObject *keywords, struct add_arguments *arguments);

#endif
