#include "lab/ladder/raw_launch.h"

#include <cuda_runtime_api.h>

#include "base/now.h"
#include "cuda/kernels.h"
#include "gpu/device.h"
#include "gpu/graph_kind.h"
#include "gpu/state.h"

static int
queue(const struct add_call *call, cudaGraphExec_t graph, int calls, struct status *status)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < calls && error == cudaSuccess; i++)
        error = graph ? cudaGraphLaunch(graph, call->stream) : add_launch(call);
    return error == cudaSuccess ? 0 : device_status(status, error, graph ? "cudaGraphLaunch" : "cudaLaunchKernel");
}

static int
wait(cudaStream_t stream, struct status *status)
{
    cudaError_t error = stream_wait(stream);
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaStreamSynchronize");
}

int
raw_launches(const struct plan *plan, enum raw_launch_way way, int calls, double *seconds, struct status *status)
{
    struct device_scope scope;
    if (device_enter_relaxed(&scope, plan->device, status) < 0)
        return -1;
    int result = -1;
    cudaGraphExec_t graph = NULL;
    struct add_call call = {.component = plan->component,
                            .a = plan->a,
                            .b = plan->b,
                            .c = plan->c,
                            .n = plan->n,
                            .stream = plan->stream,
                            .programmatic = way == RAW_LAUNCH_PROGRAMMATIC};
    launch_config_choose(&scope.state->launch_configs, &call);
    if (way == RAW_LAUNCH_PROGRAMMATIC && !scope.state->programmatic) {
        status_set(status, STATUS_VALUE, "programmatic launches need compute capability 9.0");
        goto done;
    }
    if ((way == RAW_LAUNCH_GRAPH && graph_capture_add(&graph, &call, status) < 0) || wait(plan->stream, status) < 0)
        goto done;
    const double begin = now_seconds();
    result = queue(&call, graph, calls, status);
    *seconds = (now_seconds() - begin) / calls;
    if (result == 0)
        result = wait(plan->stream, status);
    else
        stream_wait(plan->stream);
done:
    graph_free(graph);
    device_leave(&scope);
    return result;
}
