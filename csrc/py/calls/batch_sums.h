/* The sums that a list's pairs have no out for. */
#ifndef VECADD_PY_CALLS_BATCH_SUMS_H
#define VECADD_PY_CALLS_BATCH_SUMS_H

#include "py/calls/batch_call.h"

/* Notes an operand's stream among those to join. Returns 0, or -1 with an exception set. */
int batch_join(struct batch_call *call, const struct operand *operand);

/* Sets call->result and call->gaps, and makes a sum for each of call->adds without an out, whose address goes there.
 * `out` and `given`, a stream, are the caller's, or NULL. Returns 0, or -1 with an exception set. */
int batch_make_sums(struct module_state *state, struct batch_call *call, PyObject *out, PyObject *given);

/* Puts the sums into the caller's list once they are made, which then is call->result. Returns 0, or -1 with an
 * exception set. */
int batch_fill_gaps(struct batch_call *call);

#endif
