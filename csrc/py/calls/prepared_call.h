/* A call that is looked at and checked: what is to be done, and all that it takes. */
#ifndef VECADD_PY_CALLS_PREPARED_CALL_H
#define VECADD_PY_CALLS_PREPARED_CALL_H

#include "base/addition.h"
#include "base/plan.h"
#include "py/operands/operand_from.h"

enum call_kind {
    CALL_PLANNED,      /* plan is ready; its c is NULL where there is no out */
    CALL_MATERIALIZED, /* plan.materialize: vecadd._materialize broadcasts, casts or copies the operands first */
    CALL_LIBRARY,      /* host arrays of another library than NumPy: `library` adds them */
    CALL_NUMPY,        /* numpy.add does it, for the reason plan.why */
};

/* Not to be moved: it points into itself. */
struct prepared_call {
    enum call_kind kind;
    PyObject *library; /* CALL_LIBRARY: the vecadd.interop.Library, held */
    struct plan plan;
    struct owned_operand operands[ROLE_COUNT]; /* but of identical contiguous arrays on the host, which need none */
    bool held[ROLE_COUNT];                     /* which of them are to be cleared */
    struct device_shape sum;                   /* what a new array for the sum is to be */
    PyArray_Descr *descr;     /* host memory: of a new sum, owned; NULL: that of a. Of long and long long, which are one
                               * to our code, NumPy's choice */
    struct addition addition; /* what plan.strided and sum point into */
};

#endif
