/* graph.h on the CUDA-runtime double: when the graph is launched and when the kernel is, and in which order. */
#include <cuda_runtime_api.h>
#include <pthread.h>

#include "check.h"
#include "double.h"
#include "failures.h"
#include "gpu/device.h"
#include "gpu/graph.h"
#include "gpu/stream.h"

enum { N = 100, TIMES = 20 };

static void *
numbers(int32_t first, int32_t step)
{
    int32_t host[N];
    for (int i = 0; i < N; i++)
        host[i] = first + step * i;
    void *memory = double_device_malloc(0, sizeof host);
    CHECK(double_device_write(memory, host, sizeof host) == 0);
    return memory;
}

static int
holds(const void *memory, int32_t first, int32_t step)
{
    int32_t host[N];
    int same = double_device_read(host, memory, sizeof host) == 0;
    for (int i = 0; i < N; i++)
        same = same && host[i] == first + step * i;
    return same;
}

/* c = a + b on that stream; c may be a. */
static struct plan
addition(void *a, void *b, void *c, void *stream)
{
    return (struct plan){.route = ROUTE_DEVICE,
                         .component = COMPONENT_I32,
                         .n = N,
                         .a = a,
                         .b = b,
                         .c = c,
                         .device = 0,
                         .stream = stream};
}

static struct graph *
opened(const struct plan *plan)
{
    struct graph *graph;
    struct status status;
    CHECK(graph_of_plan(&graph, plan, &status) == 0, "%s", status.text);
    return graph;
}

static void
run(struct graph *graph)
{
    struct status status;
    CHECK(graph_run(graph, &status) == 0, "%s", status.text);
}

static void
runs_come_one_after_the_other(void)
{
    for (unsigned seed = 0; seed < 20; seed++) {
        double_reset(seed);
        void *x = numbers(0, 0), *one = numbers(1, 0), *stream = double_stream_create(0, 1);
        const struct plan plan = addition(x, one, x, stream);
        struct graph *graph = opened(&plan);
        for (int i = 0; i < TIMES; i++)
            run(graph);
        graph_close(graph); /* what is queued goes on */
        CHECK(double_calls("cudaGraphLaunch") == TIMES);
        CHECK(holds(x, TIMES, 0), "seed %u", seed);
    }
    CHECK(double_faults() == 0);
}

static void
a_run_comes_after_the_operands_streams_and_before_what_they_do_next(void)
{
    for (unsigned seed = 0; seed < 40; seed++) {
        double_reset(seed);
        void *a = numbers(0, 0), *b = numbers(5, 1), *c = numbers(0, 0), *late = numbers(7, 2), *later = numbers(9, 9);
        void *stream = double_stream_create(0, 1), *owner = double_stream_create(0, 1);
        struct plan plan = addition(a, b, c, stream);
        plan.join[0] = owner;
        plan.joins = 1;
        struct graph *graph = opened(&plan);
        double_copy_async(a, late, N * sizeof(int32_t), owner);
        run(graph);
        double_copy_async(a, later, N * sizeof(int32_t), owner);
        CHECK(holds(c, 12, 3), "seed %u", seed);
        graph_close(graph);
    }
}

/* A graph that is launched into a capture ends it. */
static void
a_stream_that_captures_gets_the_kernel(void)
{
    void *x = numbers(0, 0), *one = numbers(1, 0), *stream = double_stream_create(0, 1);
    const struct plan plan = addition(x, one, x, stream);
    struct graph *graph = opened(&plan);
    cudaGraph_t captured;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
    run(graph);
    run(graph);
    CHECK(cudaStreamEndCapture(stream, &captured) == cudaSuccess);
    CHECK(cudaGraphInstantiate(&exec, captured, 0) == cudaSuccess);
    CHECK(holds(x, 0, 0));
    CHECK(cudaGraphLaunch(exec, stream) == cudaSuccess);
    run(graph);
    CHECK(holds(x, 3, 0));
    CHECK(cudaGraphExecDestroy(exec) == cudaSuccess && cudaGraphDestroy(captured) == cudaSuccess);
    graph_close(graph);
    CHECK(double_faults() == 0);
}

/* To wait for a stream outside of it, or to have one wait for it, would end the capture. */
static void
a_capture_leaves_out_the_streams_that_are_no_part_of_it(void)
{
    for (int inside = 0; inside < 2; inside++) {
        double_reset(0);
        void *x = numbers(0, 0), *one = numbers(1, 0);
        void *stream = double_stream_create(0, 1), *owner = double_stream_create(0, 1);
        struct plan plan = addition(x, one, x, stream);
        plan.join[0] = owner;
        plan.join[1] = NULL;
        plan.joins = 2;
        struct graph *graph = opened(&plan);
        struct status status;
        cudaGraph_t captured;
        size_t nodes = 0;
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
        if (inside) {
            CHECK(stream_join(0, stream, owner, &status) == 0, "%s", status.text);
            run(graph);
            CHECK(stream_join(0, owner, stream, &status) == 0, "%s", status.text);
        } else
            run(graph);
        CHECK(cudaStreamEndCapture(stream, &captured) == cudaSuccess);
        CHECK(cudaGraphGetNodes(captured, NULL, &nodes) == cudaSuccess && nodes == 1);
        CHECK(cudaGraphDestroy(captured) == cudaSuccess);
        run(graph);
        CHECK(holds(x, 1, 0));
        graph_close(graph);
    }
    CHECK(double_faults() == 0);
}

static void
a_plan_made_in_a_capture_launches_kernels(void)
{
    void *x = numbers(0, 0), *one = numbers(1, 0), *stream = double_stream_create(0, 1);
    const struct plan plan = addition(x, one, x, stream);
    cudaGraph_t captured;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
    struct graph *graph = opened(&plan);
    run(graph);
    CHECK(cudaStreamEndCapture(stream, &captured) == cudaSuccess);
    CHECK(cudaGraphDestroy(captured) == cudaSuccess);
    double_reset(0);
    run(graph);
    CHECK(holds(x, 1, 0));
    CHECK(double_calls("cudaGraphLaunch") == 0 && double_calls("cudaLaunchKernelExC") == 1);
    graph_close(graph);
    CHECK(double_faults() == 0);
}

static void
what_is_no_single_kernel_is_added_as_ever(void)
{
    void *x = numbers(0, 1), *one = numbers(1, 0);
    struct plan plan = addition(x, one, (char *)x + 4 * sizeof(int32_t), NULL);
    plan.n = N - 4;
    struct graph *graph = opened(&plan);
    run(graph);
    int32_t host[N];
    CHECK(double_device_read(host, x, sizeof host) == 0);
    CHECK(host[3] == 3 && host[4] == 1 && host[N - 1] == N - 4);
    graph_close(graph);

    plan.n = 0;
    graph = opened(&plan);
    run(graph);
    graph_close(graph);
    CHECK(double_calls("cudaGraphLaunch") == 0);
}

static void *
run_times(void *graph)
{
    for (int i = 0; i < TIMES; i++)
        run(graph);
    return NULL;
}

/* CUDA launches a graph for one thread at a time and does not say so to two: the double counts them as a fault. */
static void
threads_may_run_one_graph_at_once(void)
{
    void *x = numbers(0, 0), *one = numbers(1, 0), *stream = double_stream_create(0, 1);
    const struct plan plan = addition(x, one, x, stream);
    struct graph *graph = opened(&plan);
    pthread_t threads[2];
    double_delay("cudaGraphLaunch", 200);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, run_times, graph) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK(double_faults() == 0);
    CHECK(holds(x, 2 * TIMES, 0));
    graph_close(graph);
}

static void
leaves_the_current_device_as_it_was(void)
{
    int current = -1;
    CHECK(cudaSetDevice(1) == cudaSuccess);
    void *x = numbers(0, 0), *one = numbers(1, 0);
    const struct plan plan = addition(x, one, x, NULL);
    struct graph *graph = opened(&plan);
    CHECK(cudaGetDevice(&current) == cudaSuccess && current == 1);
    run(graph);
    CHECK(cudaGetDevice(&current) == cudaSuccess && current == 1);
    graph_close(graph);
    CHECK(cudaGetDevice(&current) == cudaSuccess && current == 1);
    CHECK(holds(x, 1, 0));
}

static int
plan_and_run(struct status *status)
{
    static void *a, *b, *c, *stream, *owner;
    if (!a) {
        a = numbers(1, 2);
        b = numbers(3, 4);
        stream = double_stream_create(0, 1);
        owner = double_stream_create(0, 1);
        c = numbers(0, 0);
    }
    struct plan plan = addition(a, b, c, stream);
    plan.join[0] = owner;
    plan.joins = 1;
    struct graph *graph;
    if (graph_of_plan(&graph, &plan, status) < 0) {
        CHECK(graph == NULL);
        return -1;
    }
    int failed = graph_run(graph, status);
    graph_close(graph);
    if (!failed)
        CHECK(holds(c, 4, 6));
    return failed;
}

/* But for cudaGetDevice: a release that cannot even learn the current device keeps what it has. */
static void
every_call_may_fail_once(void)
{
    static const char *const calls[] = {
        "cudaStreamIsCapturing", "cudaStreamCreateWithFlags", "cudaStreamBeginCapture", "cudaLaunchKernel",
        "cudaStreamEndCapture",  "cudaGraphInstantiate",      "cudaGraphUpload",        "cudaStreamSynchronize",
        "cudaEventRecord",       "cudaStreamWaitEvent",       "cudaGraphLaunch"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        CHECK(fail_each_call(calls[i], cudaErrorUnknown, plan_and_run) > 0, "%s", calls[i]);
}

int
main(void)
{
    RUN(runs_come_one_after_the_other);
    RUN(a_run_comes_after_the_operands_streams_and_before_what_they_do_next);
    RUN(a_stream_that_captures_gets_the_kernel);
    RUN(a_capture_leaves_out_the_streams_that_are_no_part_of_it);
    RUN(a_plan_made_in_a_capture_launches_kernels);
    RUN(what_is_no_single_kernel_is_added_as_ever);
    RUN(threads_may_run_one_graph_at_once);
    RUN(leaves_the_current_device_as_it_was);
    RUN(every_call_may_fail_once);
    return check_report();
}
