#include "add_graph.h"

#include "device.h"
#include "device_state.h"

/* The capture ends whatever happens in it. It is of this thread alone: other threads' calls go on meanwhile. */
static int
capture(cudaGraph_t *graph, struct add_call *call, struct status *status)
{
    cudaError_t error = cudaStreamBeginCapture(call->stream, cudaStreamCaptureModeThreadLocal);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaStreamBeginCapture");
    error = add_launch(call);
    const cudaError_t ended = cudaStreamEndCapture(call->stream, graph);
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
add_graph_make(cudaGraphExec_t *exec, const struct add_call *call, struct status *status)
{
    struct add_call captured = *call;
    cudaGraph_t graph = NULL;
    int result = -1;
    *exec = NULL;
    captured.programmatic = false; /* alone in its graph it has nothing to begin ahead of */
    cudaError_t error = cudaStreamCreateWithFlags(&captured.stream, cudaStreamNonBlocking);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaStreamCreateWithFlags");
    if (capture(&graph, &captured, status) == 0)
        result = instantiate(exec, graph, captured.stream, status);
    if (result < 0) {
        add_graph_free(*exec);
        *exec = NULL;
    }
    if (graph && cudaGraphDestroy(graph) != cudaSuccess)
        cudaGetLastError();
    if (cudaStreamDestroy(captured.stream) != cudaSuccess)
        cudaGetLastError();
    return result;
}

void
add_graph_free(cudaGraphExec_t graph)
{
    if (graph && cudaGraphExecDestroy(graph) != cudaSuccess)
        cudaGetLastError();
}
