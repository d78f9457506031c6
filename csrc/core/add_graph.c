#include "add_graph.h"

#include "device.h"
#include "device_state.h"

/* The capture ends whatever happens in it. It is of this thread alone: other threads' calls go on meanwhile. */
static int
capture(cudaGraph_t *graph, cudaStream_t stream, graph_launches *launches, const void *context, struct status *status)
{
    cudaError_t error = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaStreamBeginCapture");
    error = launches(context, stream);
    const cudaError_t ended = cudaStreamEndCapture(stream, graph);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaLaunchKernel");
    return ended == cudaSuccess ? 0 : device_status(status, ended, "cudaStreamEndCapture");
}

/* Without the upload the first launch would pay for it. */
static int
instantiate(cudaGraphExec_t *exec, cudaGraph_t graph, cudaStream_t stream, struct status *status)
{
    cudaError_t error = cudaGraphInstantiate(exec, graph, 0);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaGraphInstantiate");
    error = cudaGraphUpload(*exec, stream);
    const char *what = "cudaGraphUpload";
    if (error == cudaSuccess) {
        what = "cudaStreamSynchronize";
        error = stream_wait(stream);
    }
    return error == cudaSuccess ? 0 : device_status(status, error, what);
}

int
graph_make(cudaGraphExec_t *exec, graph_launches *launches, const void *context, struct status *status)
{
    cudaGraph_t graph = NULL;
    cudaStream_t stream;
    int result = -1;
    *exec = NULL;
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaStreamCreateWithFlags");
    if (capture(&graph, stream, launches, context, status) == 0)
        result = instantiate(exec, graph, stream, status);
    if (result < 0) {
        add_graph_free(*exec);
        *exec = NULL;
    }
    if (graph && cudaGraphDestroy(graph) != cudaSuccess)
        cudaGetLastError();
    if (cudaStreamDestroy(stream) != cudaSuccess)
        cudaGetLastError();
    return result;
}

static cudaError_t
launch_call(const void *context, cudaStream_t stream)
{
    struct add_call call = *(const struct add_call *)context;
    call.programmatic = false; /* alone in its graph it has nothing to begin ahead of */
    call.stream = stream;
    return add_launch(&call);
}

int
add_graph_make(cudaGraphExec_t *exec, const struct add_call *call, struct status *status)
{
    return graph_make(exec, launch_call, call, status);
}

void
add_graph_free(cudaGraphExec_t graph)
{
    if (graph && cudaGraphExecDestroy(graph) != cudaSuccess)
        cudaGetLastError();
}
