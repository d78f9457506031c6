#include "choose/numpy_loop.h"

#include <stdint.h>

#include "base/overlap.h"
#include "base/util.h"
#include "choose/plan.h"
#include "host/schedule.h"

size_t
loop_least(void)
{
    return host_thresholds()->least;
}

static bool
is_aligned(const struct loop_call *call)
{
    const uintptr_t all = (uintptr_t)call->a | (uintptr_t)call->b | (uintptr_t)call->out;
    return all % component_size[dtype_table[call->dtype].component] == 0;
}

static bool
plan_run_of_elements(struct plan *plan, const struct loop_call *call, const struct plan_request *request)
{
    const struct dtype_row *dtype = &dtype_table[call->dtype];
    const size_t bytes = call->n * dtype->itemsize;
    if (overlaps_in_part(call->a, call->out, bytes) || overlaps_in_part(call->b, call->out, bytes))
        return false;
    const struct batch_add add = {call->a, call->b, call->out, call->n * dtype->components, dtype->component};
    struct status status;
    return plan_host_run(plan, &add, request, &status) == 0;
}

/* One of a and b is one element, which is not in out. */
static bool
plan_with_one_element(struct plan *plan, struct addition *addition, const struct loop_call *call,
                      const struct plan_request *request)
{
    const ssize_t all[] = {(ssize_t)call->n}, one[] = {1};
    const struct operand array = {
        .size = call->n, .ndim = 1, .shape = all, .dtype = call->dtype, .device = -1, .writable = true};
    struct operand operand[] = {array, array, array};
    const void *const data[] = {call->a, call->b, call->out};
    for (int k = 0; k < LAYOUT_OPERANDS; k++)
        operand[k].data = (void *)(uintptr_t)data[k];
    struct operand *repeated = &operand[call->step[0] == 0 ? 0 : 1];
    repeated->size = 1;
    repeated->shape = one;

    const struct operand *const operands[] = {&operand[0], &operand[1], &operand[2]};
    const struct addition_rules rules = {.dtype = call->dtype};
    struct status status;
    return addition_resolve(addition, operands, &rules) == REFUSED_NOT &&
           plan_make(plan, addition, operands, request, &status) == 0 && plan->route == ROUTE_HOST;
}

/* With ordinary stores one thread of ours is no faster than NumPy's loop: it took 1.03 to 1.04 of its time from 2^16 to
 * 2^18 float32 on an EPYC. So the call is ours where streaming stores or several threads add, and the loop below adds
 * where no worker is awake. */
bool
plan_loop(struct plan *plan, struct addition *addition, const struct loop_call *call, bool every_thread)
{
    const ssize_t size = (ssize_t)dtype_table[call->dtype].itemsize, *step = call->step;
    const struct plan_request request = {.below = &call->below, .threads = every_thread ? threads_available() : 0};
    const bool arrays = step[0] == size && step[1] == size;
    const bool with_one = (step[0] == 0 && step[1] == size) || (step[0] == size && step[1] == 0);
    if (step[LAYOUT_SUM] != size || !is_aligned(call) || (!arrays && !with_one))
        return false;
    const bool planned =
        arrays ? plan_run_of_elements(plan, call, &request) : plan_with_one_element(plan, addition, call, &request);
    return planned && (plan->schedule.streaming || plan->schedule.threads > 1);
}
