/* From a call's arguments to a plan, or to the library that adds instead: all that add does before it allocates or
 * computes. */
#ifndef VECADD_PY_CALLS_PREPARE_H
#define VECADD_PY_CALLS_PREPARE_H

#include "py/calls/arguments.h"
#include "py/calls/prepared_call.h"

/* Returns 0, and the caller calls call_clear(); or -1 with an exception set and nothing held. */
int call_prepare(struct module_state *state, const struct add_arguments *arguments, struct prepared_call *call);

void call_clear(struct prepared_call *call);

#endif
