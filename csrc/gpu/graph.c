#include "gpu/graph.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/runtime.h"
#include "cuda/kernels.h"
#include "gpu/device.h"
#include "gpu/state.h"
#include "gpu/stream.h"

struct graph {
    struct device_work work;
    struct plan plan;     /* the work's, where it is one */
    pthread_mutex_t lock; /* locked while `exec` is launched, which two threads may not do at once */
    cudaGraphExec_t exec; /* NULL where the work cannot be a graph, or the graph was opened in a capture */
};

/* Captures on this thread alone: other threads' calls go on meanwhile. The capture is ended whatever happens in it. */
static int
capture(cudaGraph_t *graph, cudaStream_t stream, graph_launches *launches, const void *context, struct status *status)
{
    if (CUDA_CALL(status, cudaStreamBeginCapture, stream, cudaStreamCaptureModeThreadLocal) < 0)
        return -1;
    const cudaError_t error = launches(context, stream), ended = cudaStreamEndCapture(stream, graph);
    if (cuda_result(status, error, "cudaLaunchKernel") < 0)
        return -1;
    return cuda_result(status, ended, "cudaStreamEndCapture");
}

/* Uploads the graph, which the first launch would otherwise pay for. */
static int
instantiate(cudaGraphExec_t *exec, cudaGraph_t graph, cudaStream_t stream, struct status *status)
{
    if (CUDA_CALL(status, cudaGraphInstantiate, exec, graph, 0) < 0 ||
        CUDA_CALL(status, cudaGraphUpload, *exec, stream) < 0)
        return -1;
    return cuda_result(status, stream_wait(stream), "cudaStreamSynchronize");
}

int
graph_capture(cudaGraphExec_t *exec, graph_launches *launches, const void *context, struct status *status)
{
    cudaGraph_t graph = NULL;
    cudaStream_t stream;
    int result = -1;
    *exec = NULL;
    const enum cudaStreamCaptureMode before = capture_mode_relax();
    if (CUDA_CALL(status, cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking) < 0)
        goto done;
    if (capture(&graph, stream, launches, context, status) == 0)
        result = instantiate(exec, graph, stream, status);
    if (result < 0) {
        graph_free(*exec);
        *exec = NULL;
    }
    if (graph)
        device_ignore(cudaGraphDestroy(graph));
    device_ignore(cudaStreamDestroy(stream));
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
    device_ignore(cudaGraphExecDestroy(graph));
    capture_mode_restore(before);
}

static cudaError_t
launch_add(const void *context, cudaStream_t stream)
{
    struct add_call call = *(const struct add_call *)context;
    call.programmatic = false; /* alone in its graph, the kernel has none ahead of it to overlap */
    call.stream = stream;
    return add_launch(&call);
}

int
graph_capture_add(cudaGraphExec_t *graph, const struct add_call *call, struct status *status)
{
    return graph_capture(graph, launch_add, call, status);
}

static cudaError_t
launch_batch(const void *context, cudaStream_t stream)
{
    bool queued;
    return batch_launch_all(context, stream, &queued);
}

/* Makes the graph, unless the work has no kernel, or not one alone, or its stream captures already: it cannot begin a
 * second capture. */
static int
make_exec(struct graph *graph, const struct device_scope *scope, struct status *status)
{
    const struct device_work *work = &graph->work;
    bool captures;
    if (stream_captures(work->device, work->stream, &captures, status) < 0)
        return -1;
    if (captures)
        return 0;
    if (!work->plan)
        return work->count == 0 ? 0 : graph_capture(&graph->exec, launch_batch, work, status);
    if (work->plan->n == 0 || work->plan->strided || device_temporary_bytes(work->plan))
        return 0;
    struct add_call call;
    device_add_call(scope, work->plan, &call);
    return graph_capture_add(&graph->exec, &call, status);
}

int
graph_open(struct graph **graph, const struct device_work *work, struct status *status)
{
    struct device_scope scope;
    struct graph *made = calloc(1, sizeof *made);
    *graph = NULL;
    if (!made)
        return status_set(status, STATUS_MEMORY, "there is no memory for a plan");
    made->work = *work;
    if (work->plan) {
        made->plan = *work->plan;
        made->work = device_work_of(&made->plan);
    }
    int result = device_enter(&scope, work->device, status);
    if (result == 0) {
        result = make_exec(made, &scope, status);
        device_leave(&scope);
    }
    if (result < 0) {
        free(made);
        return -1;
    }
    pthread_mutex_init(&made->lock, NULL);
    *graph = made;
    return 0;
}

/* Takes the lock; false where another thread is launching the graph, perhaps into a full queue that waits for this
 * thread. The caller then launches the kernels, which the stream orders with the graph. With the per-thread default
 * stream it waits for the lock: each thread has a stream of its own, and only launches of one graph stay in order. */
static bool
take_graph(struct graph *graph)
{
    if (graph->work.stream == STREAM_PER_THREAD)
        return pthread_mutex_lock(&graph->lock) == 0;
    return pthread_mutex_trylock(&graph->lock) == 0;
}

int
graph_run(struct graph *graph, struct status *status)
{
    const struct device_work *work = &graph->work;
    struct device_scope scope;
    if (device_enter(&scope, work->device, status) < 0)
        return -1;
    bool captures; /* a graph cannot be launched then */
    int result = stream_any_captures(work->device, work->stream, work->join, work->joins, &captures, status);
    if (result == 0 && !captures && graph->exec && take_graph(graph)) {
        result = device_queue(&scope, work, NULL, graph->exec, status);
        pthread_mutex_unlock(&graph->lock);
    } else if (result == 0)
        result = device_add(work, status);
    device_leave(&scope);
    return result;
}

void
graph_close(struct graph *graph)
{
    struct device_scope scope;
    if (!graph)
        return;
    if (graph->exec && runtime_cuda_usable() && device_enter_to_release(&scope, graph->work.device)) {
        graph_free(graph->exec);
        device_leave(&scope);
    }
    free(graph);
}
