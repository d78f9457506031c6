/* Host calls whose operands are strided, broadcast, scalar or of several dtypes, as core/host_rows.h adds them. */
#ifndef VECADD_PY_CALLS_HOST_STRIDED_H
#define VECADD_PY_CALLS_HOST_STRIDED_H

#include "host/strided.h"
#include "py/operands/operand_from.h"

struct host_rows_call {
    struct host_rows core;
    const void *a, *b;
    PyArrayObject *sides[2]; /* the arrays that they are of, borrowed: an operand, or what `scalars` has */
    npy_intp sizes[2];       /* elements that they had then */
    PyObject *scalars[2];    /* arrays made of the operands that were scalars; else NULL */
    PyArray_Descr *descr;    /* of the sum, owned: of long and long long, which are one to our code, NumPy's choice */
    int ndim;                /* of the sum, as its shape */
    npy_intp shape[LAYOUT_DIMENSIONS];
    bool fortran; /* the order of a sum without out, where NumPy's would be in it too */
};

/* Describes a call if our code adds it as NumPy would and no slower: returns 1 (to be cleared), 0 where numpy.add has
 * to do it (nothing to clear), or -1 with an exception set. */
int host_rows_call_from(struct module_state *state, PyObject *const objects[ROLE_COUNT], struct host_rows_call *call);

void host_rows_call_clear(struct host_rows_call *call);

/* Adds into out, or into a new array. Returns the sum, a new reference, or NULL with an exception set. */
PyObject *host_rows_call_run(struct module_state *state, const struct host_rows_call *call, PyObject *out);

#endif
