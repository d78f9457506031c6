/* A rung that is one of the core's own additions of host arrays. */
#ifndef VECADD_LAB_LADDER_CORE_TRANSFER_H
#define VECADD_LAB_LADDER_CORE_TRANSFER_H

#include "lab/base/rung.h"
#include "transfer/transfer.h"

/* What the plan says of the call's operands and device. */
struct plan plan_of_rung_call(const struct rung_call *call);

/* Adds by `add`, and tells the call's timeline of each copy and kernel. Returns 0, or -1 with *status set. */
int run_by_core(transfer_function *add, const struct plan *plan, struct transfer_options options,
                const struct rung_call *call, struct status *status);

#endif
