#include "base/overlap.h"
#include "gpu/device.h"
#include "gpu/graph_kind.h"
#include "gpu/stream.h"

static cudaError_t
launch(const void *context, cudaStream_t stream)
{
    struct add_call call = *(const struct add_call *)context;
    call.programmatic = false; /* alone in its graph, the kernel has none ahead of it to overlap */
    call.stream = stream;
    return add_launch(&call);
}

int
graph_capture_add(cudaGraphExec_t *graph, const struct add_call *call, struct status *status)
{
    return graph_capture(graph, launch, call, status);
}

static bool
is_one_kernel(const struct plan *plan)
{
    const size_t bytes = plan->n * component_size[plan->component];
    return plan->n > 0 && !plan->strided && !overlaps_in_part(plan->a, plan->c, bytes) &&
           !overlaps_in_part(plan->b, plan->c, bytes);
}

static int
capture(cudaGraphExec_t *graph, const struct device_scope *scope, const void *work, struct status *status)
{
    const struct plan *plan = work;
    if (!is_one_kernel(plan))
        return 0;
    struct add_call call = {.component = plan->component, .a = plan->a, .b = plan->b, .c = plan->c, .n = plan->n};
    launch_config_choose(&scope->state->launch_configs, &call);
    return graph_capture_add(graph, &call, status);
}

static int
queue(const struct device_scope *scope, const void *work, cudaGraphExec_t graph, struct status *status)
{
    return device_queue(scope, work, graph, status);
}

static int
captures(const void *work, bool *any, struct status *status)
{
    const struct plan *plan = work;
    return stream_any_captures(plan->device, plan->stream, plan->join, (size_t)plan->joins, any, status);
}

static int
add(const void *work, struct status *status)
{
    return device_add(work, status);
}

int
graph_of_plan(struct graph **graph, const struct plan *plan, struct status *status)
{
    static const struct graph_kind kind = {
        .size = sizeof *plan, .capture = capture, .queue = queue, .captures = captures, .add = add};
    return graph_open(graph, &kind, plan, plan->device, plan->stream, status);
}
