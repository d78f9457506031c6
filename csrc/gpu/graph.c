#include "gpu/graph.h"

#include <pthread.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/runtime.h"
#include "gpu/capture_mode.h"
#include "gpu/device.h"
#include "gpu/graph_kind.h"
#include "gpu/stream.h"

struct graph {
    const struct graph_kind *kind;
    int device;
    void *stream;
    pthread_mutex_t lock; /* held while `exec` is launched, which two threads may not do at once */
    cudaGraphExec_t exec; /* NULL where the work cannot be a graph, or the graph was opened in a capture */
    alignas(max_align_t) char work[];
};

/* Captures on this thread alone: other threads' calls go on meanwhile. The capture is ended whatever happens in it. */
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

/* Uploads the graph, which the first launch would otherwise pay for. */
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
graph_capture(cudaGraphExec_t *exec, graph_launches *launches, const void *context, struct status *status)
{
    cudaGraph_t graph = NULL;
    cudaStream_t stream;
    int result = -1;
    *exec = NULL;
    const enum cudaStreamCaptureMode before = capture_mode_relax();
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error != cudaSuccess) {
        device_status(status, error, "cudaStreamCreateWithFlags");
        goto done;
    }
    if (capture(&graph, stream, launches, context, status) == 0)
        result = instantiate(exec, graph, stream, status);
    if (result < 0) {
        graph_free(*exec);
        *exec = NULL;
    }
    if (graph && cudaGraphDestroy(graph) != cudaSuccess)
        cudaGetLastError();
    if (cudaStreamDestroy(stream) != cudaSuccess)
        cudaGetLastError();
done:
    capture_mode_restore(before);
    return result;
}

void
graph_free(cudaGraphExec_t graph)
{
    if (!graph)
        return;
    const enum cudaStreamCaptureMode before = capture_mode_relax();
    if (cudaGraphExecDestroy(graph) != cudaSuccess)
        cudaGetLastError();
    capture_mode_restore(before);
}

/* Makes the graph, unless its stream is already capturing: it cannot begin a second capture. */
static int
capture_unless_captured(struct graph *graph, const struct device_scope *scope, struct status *status)
{
    bool captures;
    if (stream_captures(graph->device, graph->stream, &captures, status) < 0)
        return -1;
    return captures ? 0 : graph->kind->capture(&graph->exec, scope, graph->work, status);
}

int
graph_open(struct graph **opened, const struct graph_kind *kind, const void *work, int device, void *stream,
           struct status *status)
{
    *opened = NULL;
    struct device_scope scope;
    if (device_enter(&scope, device, status) < 0)
        return -1;
    int result = -1;
    struct graph *graph = malloc(sizeof *graph + kind->size);
    if (!graph) {
        status_set(status, STATUS_MEMORY, "there is no memory for a plan");
        goto done;
    }
    *graph = (struct graph){.kind = kind, .device = device, .stream = stream};
    memcpy(graph->work, work, kind->size);
    if (capture_unless_captured(graph, &scope, status) < 0) {
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

/* Takes the lock; false where another thread is launching the graph, perhaps into a full queue that waits for this
 * thread. The caller then launches the kernels, which the stream orders with the graph. With the per-thread default
 * stream it waits for the lock: each thread has a stream of its own, and only launches of one graph stay in order. */
static bool
take_graph(struct graph *graph)
{
    if (graph->stream == STREAM_PER_THREAD)
        return pthread_mutex_lock(&graph->lock) == 0;
    return pthread_mutex_trylock(&graph->lock) == 0;
}

int
graph_run(struct graph *graph, struct status *status)
{
    struct device_scope scope;
    if (device_enter(&scope, graph->device, status) < 0)
        return -1;
    bool captures; /* a graph cannot be launched then */
    int result = graph->kind->captures(graph->work, &captures, status);
    if (result == 0 && !captures && graph->exec && take_graph(graph)) {
        result = graph->kind->queue(&scope, graph->work, graph->exec, status);
        pthread_mutex_unlock(&graph->lock);
    } else if (result == 0)
        result = graph->kind->add(graph->work, status);
    device_leave(&scope);
    return result;
}

void
graph_close(struct graph *graph)
{
    struct device_scope scope;
    if (!graph)
        return;
    if (graph->exec && runtime_cuda_usable() && device_enter_to_release(&scope, graph->device)) {
        graph_free(graph->exec);
        device_leave(&scope);
    }
    free(graph);
}
