/* Pairs of add_many that need a call of add each, because only add can make or refuse them. */
#ifndef VECADD_PY_CALLS_BATCH_OTHERS_H
#define VECADD_PY_CALLS_BATCH_OTHERS_H

#include "py/calls/batch_call.h"

/* An operand of a pair, borrowed; NULL where it has none. */
PyObject *batch_object(const struct batch_call *call, enum role role, Py_ssize_t pair);

/* Puts the pair's number into the message of the exception that is set. */
void batch_name_pair(Py_ssize_t pair);

/* Has add, or NumPy for what add leaves to it, report what is wrong with one of call->others before any pair is added.
 * Returns 0, or -1 with its exception. */
int batch_check_others(struct module_state *state, const struct batch_call *call);

/* Adds them one after the other, and puts sums without an out into call->result. `module` is vecadd._core. Returns 0,
 * or -1 with an exception set. */
int batch_run_others(PyObject *module, const struct batch_call *call);

#endif
