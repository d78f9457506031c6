/* Device operands that are not one run of memory each: strided, broadcast, of two dtypes, numbers. */
#ifndef VECADD_PY_CALLS_PREPARE_LAYOUT_H
#define VECADD_PY_CALLS_PREPARE_LAYOUT_H

#include "choose/plan.h"
#include "py/calls/arguments.h"
#include "py/calls/prepared_call.h"

/* Plans the call, whose inputs are device operands (call->held) or numbers and whose out, where there is one, is in
 * device memory: sets call->plan, call->sum and, unless the operands turn out to be runs of memory after all,
 * call->strided. Returns 0, or -1 with an exception set. */
int prepare_layout(struct module_state *state, const struct add_arguments *arguments,
                   const struct plan_request *request, struct prepared_call *call);

#endif
