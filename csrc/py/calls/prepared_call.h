/* A call that is looked at and checked: what is to be done, and all that it takes. */
#ifndef VECADD_PY_CALLS_PREPARED_CALL_H
#define VECADD_PY_CALLS_PREPARED_CALL_H

#include "base/addition.h"
#include "base/strided.h"
#include "py/calls/host_strided.h"
#include "py/operands/operand_from.h"

enum call_kind {
    CALL_PLANNED,   /* plan is ready; its c is NULL where there is no out */
    CALL_HOST_ROWS, /* host_rows is ready */
    CALL_TENSORS,   /* arrays on the host of another library than NumPy: `library` adds them */
    CALL_NUMPY,     /* numpy.add does it */
    CALL_STAGED,    /* device="cuda" for host operands that have to be broadcast, cast or copied first */
};

/* Not to be moved: it points into itself. */
struct prepared_call {
    enum call_kind kind;
    PyObject *library; /* CALL_TENSORS: the vecadd._foreign.Library, held */
    const char *why;   /* not CALL_PLANNED: why not, in a few words */
    struct plan plan;
    struct host_rows_call host_rows;
    struct device_operand devices[ROLE_COUNT]; /* ROUTE_DEVICE: the operands; out's only where there is one */
    bool held[ROLE_COUNT];                     /* which of them are to be cleared */
    struct device_shape sum;                   /* ROUTE_DEVICE: what an array for the sum is to be */
    struct strided strided;                    /* what plan.strided points to */
    Py_ssize_t sum_extents[MAX_DIMENSIONS];
    Py_ssize_t sum_steps[MAX_DIMENSIONS];
};

#endif
