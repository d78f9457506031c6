/* The latency rungs: many small additions of device memory, where launches take most of the time. They add one array
 * cut into `adds` pieces, or a chain in which each addition needs the sum of the one before.
 *
 * They run on a stream of their own. The operands' own stream may be the legacy default stream, which cannot be
 * captured and on which programmatic launches are not known to be safe; an event orders the two. Nothing else waits for
 * the new stream: the rung drains it before it returns. Making it (4 us) is not timed. */
#include "lab/ladder/latency.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "base/util.h"
#include "cuda/kernels.h"
#include "cuda/lab/latency.h"
#include "gpu/device.h"
#include "gpu/state.h"
#include "gpu/stream.h"
#include "lab/ladder/device_rung.h"

enum { PARAM_ADDS, PARAM_CHAIN, MAX_ADDS = 1 << 20 };

/* How a latency rung queues its additions and waits for them, and by which launches. */
struct launches {
    /* The call's stream is the rung's own and idle, and the kernel is loaded. */
    int (*queue_and_wait)(const struct device_scope *scope, const struct rung_call *call, const struct small_add *add,
                          struct latency_stages *stages, struct status *status);
    const struct small_add *add;
};

/* The i-th addition; it has no components where there are more additions than components. */
static struct rung_call
nth_add(const struct rung_call *call, size_t i)
{
    struct rung_call add = *call;
    if (call->params[PARAM_CHAIN]) {
        if (i > 0)
            add.a = call->c;
        return add;
    }
    const size_t adds = (size_t)call->params[PARAM_ADDS], each = call->n / adds, longer = call->n % adds;
    const size_t before = (i * each + smaller(i, longer)) * component_size[call->component];
    add.a = (const char *)add.a + before;
    add.b = (const char *)add.b + before;
    add.c = (char *)add.c + before;
    add.n = each + (i < longer);
    return add;
}

static cudaError_t
launch_each(const struct rung_call *call, const struct small_add *how)
{
    cudaError_t error = cudaSuccess;
    for (size_t i = 0; i < (size_t)call->params[PARAM_ADDS] && error == cudaSuccess; i++) {
        const struct rung_call add = nth_add(call, i);
        error = (cudaError_t)how->launch(&add);
    }
    return error;
}

/* Waits for all queued work, even where queueing failed: the caller may free the arrays. */
static int
drain(const struct rung_call *call, double begin, struct latency_stages *stages, cudaError_t error, const char *what,
      struct status *status)
{
    stages->issue = now_seconds() - begin;
    const cudaError_t waited = stream_wait(call->stream);
    stages->total = now_seconds() - begin;
    if (error == cudaSuccess && waited != cudaSuccess) {
        error = waited;
        what = "cudaStreamSynchronize";
    }
    return error == cudaSuccess ? 0 : device_status(status, error, what);
}

static int
queue_each(const struct device_scope *scope, const struct rung_call *call, const struct small_add *how,
           struct latency_stages *stages, struct status *status)
{
    (void)scope;
    const double begin = now_seconds();
    const cudaError_t error = launch_each(call, how);
    return drain(call, begin, stages, error, how->call, status);
}

/* Ends the capture even where a launch in it failed, or the stream would stay unusable. The capture mode is this
 * thread's alone, so that other threads' calls go on. */
static int
capture(const struct rung_call *call, const struct small_add *how, cudaGraph_t *graph, struct status *status)
{
    if (CUDA_CALL(status, cudaStreamBeginCapture, call->stream, cudaStreamCaptureModeThreadLocal) < 0)
        return -1;
    const cudaError_t error = launch_each(call, how);
    const cudaError_t ended = cudaStreamEndCapture(call->stream, graph);
    if (error != cudaSuccess)
        return device_status(status, error, how->call);
    return ended == cudaSuccess ? 0 : device_status(status, ended, "cudaStreamEndCapture");
}

/* Uploads the graph too: otherwise the first launch would pay for the upload. */
static int
instantiate(cudaGraph_t graph, cudaStream_t stream, cudaGraphExec_t *exec, struct status *status)
{
    if (CUDA_CALL(status, cudaGraphInstantiate, exec, graph, 0) < 0)
        return -1;
    const cudaError_t error = cudaGraphUpload(*exec, stream);
    const cudaError_t waited = stream_wait(stream);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaGraphUpload");
    return waited == cudaSuccess ? 0 : device_status(status, waited, "cudaStreamSynchronize");
}

static int
as_graph(const struct device_scope *scope, const struct rung_call *call, const struct small_add *how,
         struct latency_stages *stages, struct status *status)
{
    (void)scope;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    stages->graph = true;

    double begin = now_seconds();
    int result = capture(call, how, &graph, status);
    stages->capture = now_seconds() - begin;
    if (result < 0)
        goto done;

    begin = now_seconds();
    result = instantiate(graph, call->stream, &exec, status);
    stages->instantiate = now_seconds() - begin;
    if (result < 0)
        goto done;

    begin = now_seconds();
    const cudaError_t error = cudaGraphLaunch(exec, call->stream);
    result = drain(call, begin, stages, error, "cudaGraphLaunch", status);
done:
    begin = now_seconds();
    if (exec)
        device_ignore(cudaGraphExecDestroy(exec));
    if (graph)
        device_ignore(cudaGraphDestroy(graph));
    stages->destroy = now_seconds() - begin;
    return result;
}

/* The table of additions, in host memory; the caller frees it. */
static struct segment *
segments_of(const struct rung_call *call, size_t *longest)
{
    const size_t adds = (size_t)call->params[PARAM_ADDS];
    struct segment *const segments = malloc(adds * sizeof *segments);
    *longest = 0;
    for (size_t i = 0; segments && i < adds; i++) {
        const struct rung_call add = nth_add(call, i);
        segments[i] = (struct segment){.a = add.a, .b = add.b, .c = add.c, .n = add.n};
        if (add.n > *longest)
            *longest = add.n;
    }
    return segments;
}

static int
queue_batch(const struct rung_call *call, const struct segment *table, void *device, size_t longest,
            struct latency_stages *stages, double begin, struct status *status)
{
    const size_t adds = (size_t)call->params[PARAM_ADDS];
    const char *what = "cudaMemcpyAsync";
    cudaError_t error =
        cudaMemcpyAsync(device, table, adds * sizeof *table, cudaMemcpyHostToDevice, (cudaStream_t)call->stream);
    if (error == cudaSuccess) {
        what = "cudaLaunchKernel";
        error = (cudaError_t)batched_launch(call, device, (unsigned)adds, longest);
    }
    return drain(call, begin, stages, error, what, status);
}

/* Times all that a caller with a list of pairs has to do: the table, its memory, its copy and the launch. */
static int
as_batch(const struct device_scope *scope, const struct rung_call *call, const struct small_add *how,
         struct latency_stages *stages, struct status *status)
{
    (void)how;
    if (call->params[PARAM_CHAIN])
        return status_set(status, STATUS_VALUE,
                          "rung batched makes all additions at once: chain must be 0, where none needs another's sum");
    int result = -1;
    void *device = NULL;
    size_t longest;
    const double begin = now_seconds();
    struct segment *const table = segments_of(call, &longest);
    const size_t bytes = (size_t)call->params[PARAM_ADDS] * sizeof *table;
    if (!table)
        status_set(status, STATUS_MEMORY, "there is no memory for a table of %d additions", call->params[PARAM_ADDS]);
    else if (pool_allocate(scope, call->stream, bytes, &device, status) == 0)
        result = queue_batch(call, table, device, longest, stages, begin, status);
    pool_release(call->stream, device);
    free(table);
    return result;
}

/* Begins when the work on the operands' stream is done, so that only the rung is timed. */
static int
run_on_own_stream(const struct rung *rung, const struct rung_call *given, struct status *status)
{
    struct device_scope scope;
    if (device_enter_relaxed(&scope, given->device, status) < 0)
        return -1;

    int result = -1;
    const struct launches *launches = rung->launches;
    struct rung_call call = *given;
    struct latency_stages stages = {0};
    cudaStream_t stream = NULL;
    if (rung_check_capability(rung, scope.device, status) < 0)
        goto done;
    const char *what = "cudaStreamCreateWithFlags";
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    call.stream = stream;
    if (error == cudaSuccess) {
        if (stream_join(scope.device, given->stream, stream, status) < 0)
            goto done;
        what = "cudaStreamSynchronize";
        error = cudaStreamSynchronize(stream);
    }
    if (error == cudaSuccess) {
        what = "cudaFuncGetAttributes";
        error = (cudaError_t)launches->add->load(&call);
    }
    if (error != cudaSuccess) {
        device_status(status, error, what);
        goto done;
    }
    result = launches->queue_and_wait(&scope, &call, launches->add, &stages, status);
    if (given->seconds)
        *given->seconds = stages.total;
    if (given->stages)
        *given->stages = stages;
done:
    if (stream)
        device_ignore(cudaStreamDestroy(stream));
    device_leave(&scope);
    return result;
}

/* clang-format off */
#define LATENCY_RUNG(...)                                                                                              \
    .kind = RUNG_LATENCY, .components = LATENCY_COMPONENTS, .launches = &(const struct launches){__VA_ARGS__},         \
    .run = run_on_own_stream, .params = {                                                                              \
        [PARAM_ADDS] = {"adds", "how many additions", 1, 1000, MAX_ADDS},                                              \
        [PARAM_CHAIN] = {"chain", "1: each adds b to the sum before it, over all elements; 0: each its own elements",  \
                         0, 0, 1}}
/* clang-format on */

enum { PROGRAMMATIC_CC = 90 };

static const struct rung launch_loop = {
    .name = "launch_loop",
    LATENCY_RUNG(queue_each, &serial_add),
    .changes = "many small additions, a launch each",
};

static const struct rung graph = {
    .name = "graph",
    LATENCY_RUNG(as_graph, &serial_add),
    .after = "launch_loop",
    .changes = "the launches captured into a graph and launched by one call; capture and instantiation are not timed",
};

static const struct rung pdl = {
    .name = "pdl",
    LATENCY_RUNG(queue_each, &waiting_add),
    .after = "launch_loop",
    .changes = "programmatic dependent launch: a kernel is begun before the one ahead has ended, and waits for it",
    .min_cc = PROGRAMMATIC_CC,
};

static const struct rung pdl_trigger = {
    .name = "pdl_trigger",
    LATENCY_RUNG(queue_each, &triggering_add),
    .after = "pdl",
    .changes = "each kernel lets the next begin when it has waited, not when its blocks end",
    .min_cc = PROGRAMMATIC_CC,
};

static const struct rung graph_pdl_trigger = {
    .name = "graph_pdl_trigger",
    LATENCY_RUNG(as_graph, &triggering_add),
    .after = "graph",
    .changes = "the launches of pdl_trigger in a graph",
    .min_cc = PROGRAMMATIC_CC,
};

static const struct rung batched = {
    .name = "batched",
    LATENCY_RUNG(as_batch, &batched_adds),
    .after = "launch_loop",
    .changes = "one launch over a table of all additions, which is made and copied in the timed part",
};

const struct rung *const latency_rungs[] = {&launch_loop,       &graph,   &pdl, &pdl_trigger,
                                            &graph_pdl_trigger, &batched, NULL};

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
    if (way == RAW_LAUNCH_GRAPH && graph_capture_add(&graph, &call, status) < 0)
        goto done;
    const char *what = "cudaStreamSynchronize";
    cudaError_t error = stream_wait(call.stream);
    if (error == cudaSuccess) {
        what = graph ? "cudaGraphLaunch" : "cudaLaunchKernel";
        const double begin = now_seconds();
        for (int i = 0; i < calls && error == cudaSuccess; i++)
            error = graph ? cudaGraphLaunch(graph, call.stream) : add_launch(&call);
        *seconds = (now_seconds() - begin) / calls;
        const cudaError_t waited = stream_wait(call.stream);
        error = error == cudaSuccess ? waited : error;
    }
    result = error == cudaSuccess ? 0 : device_status(status, error, what);
done:
    graph_free(graph);
    device_leave(&scope);
    return result;
}
