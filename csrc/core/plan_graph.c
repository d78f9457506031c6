#include "plan_graph.h"

#include <pthread.h>
#include <stdlib.h>

#include "add_graph.h"
#include "device.h"
#include "device_state.h"
#include "runtime.h"
#include "stream.h"

struct plan_graph {
    struct plan plan;
    pthread_mutex_t lock; /* held while `exec` is launched: two threads may not do that at once */
    cudaGraphExec_t exec; /* NULL where the addition is no single kernel, or was planned in a capture */
};

/* Whether the plan is one kernel, so that it can be launched as a graph. */
static bool
one_kernel(const struct plan *plan)
{
    const size_t bytes = plan->n * lane_size[plan->lane];
    return plan->n > 0 && !plan->strided && !plan_overlaps_in_part(plan->a, plan->c, bytes) &&
           !plan_overlaps_in_part(plan->b, plan->c, bytes);
}

static int
make_graph(struct plan_graph *graph, const struct device_scope *scope, struct status *status)
{
    const struct plan *plan = &graph->plan;
    bool captures;
    if (stream_captures(plan->stream, &captures, status) < 0)
        return -1;
    if (captures)
        return 0;
    struct add_call call = {.lane = plan->lane, .a = plan->a, .b = plan->b, .c = plan->c, .n = plan->n};
    recipe_choose(&scope->state->recipes, &call);
    return add_graph_make(&graph->exec, &call, status);
}

int
plan_graph_open(struct plan_graph **opened, const struct plan *plan, struct status *status)
{
    *opened = NULL;
    struct device_scope scope;
    if (device_enter(&scope, plan->device, status) < 0)
        return -1;
    int result = -1;
    struct plan_graph *graph = malloc(sizeof *graph);
    if (!graph) {
        status_set(status, STATUS_MEMORY, "there is no memory for a plan");
        goto done;
    }
    *graph = (struct plan_graph){.plan = *plan};
    if (one_kernel(plan) && make_graph(graph, &scope, status) < 0) {
        free(graph);
        goto done;
    }
    pthread_mutex_init(&graph->lock, NULL);
    *opened = graph;
    result = 0;
done:
    device_leave(&scope);
    return result;
}

static int
add_in_capture(const struct plan_graph *graph, struct status *status)
{
    struct plan plan = graph->plan;
    plan.joins = stream_keep_capturing(plan.join, plan.joins, status);
    return plan.joins < 0 ? -1 : device_add(&plan, status);
}

int
plan_graph_run(struct plan_graph *graph, struct status *status)
{
    struct device_scope scope;
    if (device_enter(&scope, graph->plan.device, status) < 0)
        return -1;
    bool captures;
    int result = stream_captures(graph->plan.stream, &captures, status);
    if (result == 0 && captures)
        result = add_in_capture(graph, status);
    else if (result == 0 && !graph->exec)
        result = device_add(&graph->plan, status);
    else if (result == 0) {
        pthread_mutex_lock(&graph->lock);
        result = device_queue(&scope, &graph->plan, graph->exec, status);
        pthread_mutex_unlock(&graph->lock);
    }
    device_leave(&scope);
    return result;
}

void
plan_graph_close(struct plan_graph *graph)
{
    struct device_scope scope;
    if (!graph)
        return;
    if (graph->exec && runtime_cuda_usable() && device_enter_to_release(&scope, graph->plan.device)) {
        add_graph_free(graph->exec);
        device_leave(&scope);
    }
    free(graph);
}
