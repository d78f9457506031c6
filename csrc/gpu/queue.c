/* Queues an addition on a device: the kernel or its graph, between the joins of its streams. */
#include <cuda_runtime_api.h>

#include "base/overlap.h"
#include "cuda/kernels.h"
#include "gpu/device.h"
#include "gpu/state.h"
#include "gpu/stream.h"
#include "gpu/strided.h"

struct addition {
    const struct device_scope *scope;
    const struct plan *plan;
    void *temporary;       /* memory that the sum goes through; NULL: none */
    cudaGraphExec_t graph; /* NULL: launch the kernel */
};

/* Launches `tuned` into c and, where c is not out, copies c to out. Programmatic launches take the host 3.45 us,
 * plain ones 4.04 (H200). The kernel first waits for the kernel ahead, which ends after all work before it whether or
 * not it waited, on the legacy default stream too: tests/double/conformance/programmatic_tuned.cu. */
static int
queue_run(const struct device_scope *scope, const struct plan *plan, void *c, bool *queued, struct status *status)
{
    struct add_call call = {.component = plan->component,
                            .a = plan->a,
                            .b = plan->b,
                            .c = c,
                            .n = plan->n,
                            .stream = plan->stream,
                            .programmatic = scope->state->programmatic};
    launch_config_choose(&scope->state->launch_configs, &call);
    cudaError_t error = add_launch(&call);
    if (error != cudaSuccess)
        return device_status(status, error, call.programmatic ? "cudaLaunchKernelExC" : "cudaLaunchKernel");
    *queued = true;
    if (c == plan->c)
        return 0;
    error =
        cudaMemcpyAsync(plan->c, c, plan->n * component_size[plan->component], cudaMemcpyDeviceToDevice, plan->stream);
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaMemcpyAsync");
}

/* Marked queued before the call: when one of several launches fails, others may be queued. */
static int
queue_strided(const struct plan *plan, void *temporary, bool *queued, struct status *status)
{
    *queued = true;
    const cudaError_t error = strided_queue(plan, temporary);
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaLaunchKernel");
}

static int
queue_graph(const struct plan *plan, cudaGraphExec_t graph, bool *queued, struct status *status)
{
    cudaError_t error = cudaGraphLaunch(graph, plan->stream);
    *queued = error == cudaSuccess;
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaGraphLaunch");
}

/* a stream_work */
static int
queue(const void *context, bool *queued, struct status *status)
{
    const struct addition *work = context;
    const struct plan *plan = work->plan;
    if (work->graph)
        return queue_graph(plan, work->graph, queued, status);
    if (plan->strided)
        return queue_strided(plan, work->temporary, queued, status);
    return queue_run(work->scope, plan, work->temporary ? work->temporary : plan->c, queued, status);
}

static int
queue_add(const struct addition *work, struct status *status)
{
    const struct plan *plan = work->plan;
    return stream_queue_between(work->scope->device, plan->stream, plan->join, (size_t)plan->joins, queue, work,
                                status);
}

int
device_queue(const struct device_scope *scope, const struct plan *plan, cudaGraphExec_t graph, struct status *status)
{
    return queue_add(&(struct addition){scope, plan, NULL, graph}, status);
}

/* Bytes of the temporary for an out that partly overlaps an input; 0: none needed. */
static size_t
temporary_bytes(const struct plan *plan)
{
    if (plan->strided)
        return strided_temporary(plan);
    const size_t bytes = plan->n * component_size[plan->component];
    return overlaps_in_part(plan->a, plan->c, bytes) || overlaps_in_part(plan->b, plan->c, bytes) ? bytes : 0;
}

int
device_add(const struct plan *plan, struct status *status)
{
    if (plan->n == 0)
        return 0;
    struct device_scope scope;
    if (device_enter(&scope, plan->device, status) < 0)
        return -1;

    int result = -1;
    void *temporary = NULL, *stream = plan->stream; /* of the temporary */
    const size_t bytes = temporary_bytes(plan);
    if (bytes && (stream_of_memory(plan->device, plan->stream, plan->join, (size_t)plan->joins, &stream, status) < 0 ||
                  pool_allocate(&scope, stream, bytes, &temporary, status) < 0))
        goto done;

    result = queue_add(&(struct addition){&scope, plan, temporary, NULL}, status);
done:
    pool_release(stream, temporary);
    device_leave(&scope);
    return result;
}
