#include "choose/plan.h"

#include "base/fpenv.h"
#include "choose/routes.h"
#include "gpu/device.h"
#include "host/add.h"
#include "transfer/transfer.h"

static int
plan_host(struct plan *plan, struct status *status)
{
    plan->route = ROUTE_HOST;
    plan->simd = host_simd_chosen(status);
    if (plan->simd == NULL)
        return -1;
    plan->schedule = host_schedule_for(plan->lane, plan->n, plan->c == plan->a || plan->c == plan->b);
    return 0;
}

/* The GPU rounds to nearest and flushes nothing; a caller who has set anything else gets it from the host. */
static int
plan_transfer(struct plan *plan, const struct plan_request *request, struct status *status)
{
    if (!fpenv_is_default(fpenv_get()))
        return plan_host(plan, status);
    plan->route = ROUTE_TRANSFER;
    plan->device = request->device;
    return 0;
}

/* The processor's part of it is the host's plan; the GPU's has the same bounds as a transfer. */
static int
plan_hybrid(struct plan *plan, struct status *status)
{
    if (plan_host(plan, status) < 0)
        return -1;
    if (plan->n * lane_size[plan->lane] >= HYBRID_LEAST && fpenv_is_default(fpenv_get()))
        plan->route = ROUTE_HYBRID;
    return 0;
}

/* Whether the route that is open may be the GPU's, in this thread and at this time. */
static bool
may_leave_host(const struct plan *plan)
{
    return routes_may_leave_host(plan->n * lane_size[plan->lane]) && fpenv_is_default(fpenv_get());
}

static int
plan_open(struct plan *plan, struct status *status)
{
    if (plan_host(plan, status) < 0)
        return -1;
    if (!may_leave_host(plan))
        return 0;
    plan->route = routes_choose(plan, &plan->device);
    plan->chosen = plan->route != ROUTE_HOST;
    return 0;
}

void
plan_join(struct plan *plan, void *stream)
{
    if (stream == plan->stream)
        return;
    for (int i = 0; i < plan->joins; i++)
        if (plan->join[i] == stream)
            return;
    plan->join[plan->joins++] = stream;
}

const struct operand *
plan_leader(const struct operand *const operands[3])
{
    const struct operand *leader = NULL;
    for (int i = 0; i < 3; i++)
        if (operands[i] && operands[i]->has_stream && (!leader || operands[i]->stream_kind > leader->stream_kind))
            leader = operands[i];
    return leader;
}

static int
plan_device(struct plan *plan, const struct operand *const operands[3], const struct plan_request *request,
            struct status *status)
{
    static const char *const names[] = {"a", "b", "out"};
    plan->route = ROUTE_DEVICE;
    plan->device = operands[0]->device;
    const struct operand *leader = plan_leader(operands);
    for (int i = 0; i < 3; i++)
        if (operands[i]->device != plan->device)
            return status_set(status, STATUS_VALUE, "a is on cuda:%d and %s on cuda:%d; copy one to the other's device",
                              plan->device, names[i], operands[i]->device);
    plan->stream = request->has_stream ? request->stream : leader ? leader->stream : NULL;
    if (request->on_device && request->device >= 0 && request->device != plan->device)
        return status_set(status, STATUS_VALUE, "device is cuda:%d, but the operands are on cuda:%d; leave device out",
                          request->device, plan->device);
    for (int i = 0; i < 3; i++)
        if (operands[i]->has_stream)
            plan_join(plan, operands[i]->stream);
    return 0;
}

int
plan_make(struct plan *plan, const struct operand *a, const struct operand *b, const struct operand *out,
          const struct plan_request *request, struct status *status)
{
    const struct dtype_row *dtype = &dtype_table[a->dtype];
    *plan = (struct plan){
        .lane = dtype->lane, .n = a->size * dtype->lanes, .a = a->data, .b = b->data, .c = out->data, .device = -1};
    if (a->place == PLACE_DEVICE)
        return plan_device(plan, (const struct operand *const[]){a, b, out}, request, status);
    if (request->on_device)
        return plan_transfer(plan, request, status);
    if (request->hybrid)
        return plan_hybrid(plan, status);
    if (request->open)
        return plan_open(plan, status);
    return plan_host(plan, status);
}

static unsigned
run_on_host(const struct plan *plan)
{
    return host_add(plan->simd, &plan->schedule, plan->lane, plan->a, plan->b, plan->c, plan->n);
}

typedef int gpu_add(const struct plan *plan, unsigned *fp_flags, struct status *status);

/* What was routed to the GPU for speed alone fails for no reason of the caller's: the host adds, unless an operand is
 * already overwritten. The host adds as well where a plan that is kept was made under another rounding mode, or before
 * use_gpu(False). */
static int
run_on_gpu(gpu_add *add, const struct plan *plan, unsigned *fp_flags, struct status *status)
{
    if (plan->chosen && !may_leave_host(plan)) {
        *fp_flags = run_on_host(plan);
        return 0;
    }
    const int result = add(plan, fp_flags, status);
    if (result == 0)
        return 0;
    const bool in_place = plan->c == plan->a || plan->c == plan->b;
    if (!plan->chosen || (result == TRANSFER_SPOILED && in_place))
        return -1;
    routes_failed(status);
    *fp_flags = run_on_host(plan);
    return 0;
}

int
plan_run(const struct plan *plan, unsigned *fp_flags, struct status *status)
{
    *fp_flags = 0;
    switch (plan->route) {
    case ROUTE_HOST:
        *fp_flags = run_on_host(plan);
        return 0;
    case ROUTE_TRANSFER:
        return run_on_gpu(transfer_add, plan, fp_flags, status);
    case ROUTE_HYBRID:
        return run_on_gpu(hybrid_add, plan, fp_flags, status);
    case ROUTE_DEVICE:
        return device_add(plan, status);
    }
    return status_set(status, STATUS_VALUE, "plan has no route %d", (int)plan->route);
}
