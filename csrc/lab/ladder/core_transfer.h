/* A rung that is one of the core's own additions of host arrays. */
#ifndef VECADD_LAB_LADDER_CORE_TRANSFER_H
#define VECADD_LAB_LADDER_CORE_TRANSFER_H

#include "lab/base/rung.h"
#include "transfer/transfer.h"

/* A plan with the call's operands and device. */
struct plan plan_of_rung_call(const struct rung_call *call);

/* Runs `add`; the call's timeline records each copy and kernel. Returns 0, or -1 with *status set. */
int run_by_core(transfer_function *add, const struct plan *plan, struct transfer_options options,
                const struct rung_call *call, struct status *status);

#endif
