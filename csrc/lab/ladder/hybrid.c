/* hybrid: what add(device="hybrid") does, by csrc/transfer/hybrid.c. Processor and GPU take blocks from the two ends of
 * the arrays until they meet.
 *
 *   after    tuned_transfer
 *   changes  the processor adds too; how fast each of the two is while they add decides their shares
 *   expects  1e8 float32, page-locked: 7.3 ms by 15 threads and a GPU, 8.2 by 16 threads alone, 15.5 by the GPU
 *            alone. Ordinary memory is the processor's: copying a chunk for the GPU takes longer than adding it
 *   from     our own measurements
 *   try      vecadd bench transfer --rungs tuned_transfer,hybrid
 */
#include "host/add.h"
#include "lab/ladder/core_transfer.h"
#include "lab/ladder/transfer_rung.h"

enum { PARAM_THREADS, MAX_THREADS = 256 };

static int
run_hybrid(const struct rung_call *call, struct status *status)
{
    const int threads = call->params[PARAM_THREADS];
    const bool in_place = call->c == call->a || call->c == call->b;
    struct plan plan = plan_of_rung_call(call);
    plan.route = ROUTE_HYBRID;
    plan.simd = host_simd_chosen(status);
    if (plan.simd == NULL)
        return -1;
    plan.schedule = host_schedule_for(call->component, call->n, in_place);
    if (threads)
        plan.schedule = host_schedule_forced(call->component, call->n, threads, plan.schedule.streaming);
    return run_by_core(hybrid_add, &plan, (struct transfer_options){0}, call, status);
}

const struct rung rung_hybrid = {
    .name = "hybrid",
    .kind = RUNG_TRANSFER,
    .after = "tuned_transfer",
    .changes = "the processor adds too, from the front, while the GPU adds from the back, until all is added",
    .tested = "double",
    .stages = STAGES_SHARED,
    .memory = RUNG_MEMORY_EITHER,
    .components = EVERY_COMPONENT,
    .params = {[PARAM_THREADS] = {"threads", "that add, one of which feeds the GPU too; 0: as many as add takes", 0, 0,
                                  MAX_THREADS}},
    .run = run_hybrid,
};
