/* A checked call: what is to be done, and all that it needs. */
#ifndef VECADD_PY_CALLS_PREPARED_CALL_H
#define VECADD_PY_CALLS_PREPARED_CALL_H

#include "base/addition.h"
#include "base/plan.h"
#include "py/operands/operand_from.h"

enum call_kind {
    CALL_PLANNED,      /* plan is ready; its c is NULL where there is no out */
    CALL_MATERIALIZED, /* vecadd._called_by_core broadcasts, casts or copies the operands first */
    CALL_HOST_TENSORS, /* host arrays of another library than NumPy: vecadd.interop.host_tensors adds them */
    CALL_LIBRARY,      /* `library` itself adds, and records that it does */
    CALL_NUMPY,        /* numpy.add adds; plan.why is the reason */
};

/* Must not be moved: it points into itself. */
struct prepared_call {
    enum call_kind kind;
    PyObject *library; /* CALL_HOST_TENSORS, CALL_LIBRARY: the vecadd.interop.Library, held */
    struct plan plan;
    struct owned_operand operands[ROLE_COUNT]; /* unset for identical contiguous arrays on the host */
    bool held[ROLE_COUNT];                     /* which operands have to be cleared */
    struct device_shape sum;                   /* the array to make for the sum */
    PyArray_Descr *descr;     /* host memory: a new sum's, owned, with NumPy's choice of long or long long; NULL: a's */
    struct addition addition; /* plan.strided and sum point into it */
    const char *differs;      /* host memory: why the operands are no contiguous arrays of one dtype and shape, in a few
                               * words; unset where they are */
};

#endif
