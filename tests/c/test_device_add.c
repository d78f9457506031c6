/* device_add, planned graphs and batches on the CUDA-runtime double: what threads may do at once, and what is left when
 * a CUDA call fails. What is added, and in which order of streams, tests/device says of all of them. */
#include <cuda_runtime_api.h>
#include <pthread.h>

#include "cuda/kernels.h"
#include "double.h"
#include "failures.h"
#include "gpu/add.h"
#include "gpu/device.h"
#include "gpu/graph.h"
#include "gpu/stream.h"
#include "sums.h"
#include "tests.h"

enum { DEVICE = 1, N = 500, TIMES = 20, SALT = 1 };

/* first, first + step, ... on the device, which is not the threads' current one. */
static void *
numbers(int32_t first, int32_t step)
{
    int32_t host[N];
    for (int i = 0; i < N; i++)
        host[i] = first + step * i;
    void *memory = double_device_malloc(DEVICE, sizeof host);
    CHECK(double_device_write(memory, host, sizeof host) == 0);
    return memory;
}

static bool
has_values(const void *memory, int32_t first, int32_t step)
{
    int32_t host[N];
    bool same = double_device_read(host, memory, sizeof host) == 0;
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
                         .device = DEVICE,
                         .stream = stream};
}

/* A thread's operand, and the streams on which it is made and read. */
struct joiner {
    void *source, *x, *y, *before, *after;
    pthread_barrier_t *start;
};

static void *
join_and_copy(void *given)
{
    const struct joiner *joiner = given;
    struct status status;
    CHECK(double_copy_async(joiner->x, joiner->source, 4, joiner->before) == 0);
    pthread_barrier_wait(joiner->start);
    CHECK(stream_join(DEVICE, joiner->before, joiner->after, &status) == 0, "%s", status.text);
    CHECK(double_copy_async(joiner->y, joiner->x, 4, joiner->after) == 0);
    return NULL;
}

/* Each stream waits for the thread's own other one, although another thread joins two streams between the record of an
 * event and the wait for it. */
TEST(threads_may_join_streams_at_once)
{
    enum { JOINERS = 3, ROUNDS = 15 };
    struct joiner joiners[JOINERS];
    pthread_t threads[JOINERS];
    const int32_t value = 7;
    pthread_barrier_t start;
    CHECK(pthread_barrier_init(&start, NULL, JOINERS) == 0);
    for (int i = 0; i < JOINERS; i++) {
        joiners[i] = (struct joiner){.source = double_device_malloc(DEVICE, 4),
                                     .before = double_stream_create(DEVICE, 1),
                                     .after = double_stream_create(DEVICE, 1),
                                     .start = &start};
        CHECK(double_device_write(joiners[i].source, &value, 4) == 0);
    }
    for (unsigned seed = 0; seed < ROUNDS; seed++) {
        double_reset(seed);
        double_delay("cudaStreamWaitEvent", 300);
        for (int i = 0; i < JOINERS; i++) {
            joiners[i].x = double_device_malloc(DEVICE, 4);
            joiners[i].y = double_device_malloc(DEVICE, 4);
            CHECK(pthread_create(&threads[i], NULL, join_and_copy, &joiners[i]) == 0);
        }
        for (int i = 0; i < JOINERS; i++)
            pthread_join(threads[i], NULL);
        for (int i = 0; i < JOINERS; i++) {
            int32_t found = 0;
            CHECK(double_copy_async(&found, joiners[i].y, 4, joiners[i].after) == 0);
            CHECK(double_stream_synchronize(joiners[i].after) == 0 && found == value, "seed %u: %d", seed, found);
        }
        for (int i = 0; i < JOINERS; i++) {
            double_device_free(joiners[i].x);
            double_device_free(joiners[i].y);
        }
    }
    CHECK(double_faults() == 0);
}

static void *
run_times(void *graph)
{
    struct status status;
    for (int i = 0; i < TIMES; i++)
        CHECK(graph_run(graph, &status) == 0, "%s", status.text);
    return NULL;
}

/* CUDA launches a graph for one thread at a time and does not say so to two: the double counts them as a fault. */
TEST(threads_may_run_one_graph_at_once)
{
    void *x = numbers(0, 0), *one = numbers(1, 0), *stream = double_stream_create(DEVICE, 1);
    const struct plan plan = addition(x, one, x, stream);
    const struct device_work work = device_work_of(&plan);
    struct graph *graph;
    struct status status;
    CHECK(graph_open(&graph, &work, &status) == 0, "%s", status.text);
    pthread_t threads[2];
    double_delay("cudaGraphLaunch", 200);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, run_times, graph) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK(double_faults() == 0);
    CHECK(has_values(x, 2 * TIMES, 0));
    graph_close(graph);
}

/* More bytes than the kernel's table has bits for. */
TEST(a_long_addition_of_a_batch_is_cut_into_pieces)
{
    const size_t n = (size_t)BATCH_MOST_BYTES + 1000;
    struct status status;
    uint8_t *host = malloc(n), *memory = double_device_malloc(0, n);
    for (size_t i = 0; i < n; i++)
        host[i] = (uint8_t)(i % 251);
    CHECK(double_device_write(memory, host, n) == 0);
    const struct batch_add add = {.a = memory, .b = memory, .c = memory, .n = n, .component = COMPONENT_I8};
    const struct device_work batch = {.adds = &add, .count = 1};
    CHECK(device_add(&batch, &status) == 0, "%s", status.text);
    CHECK(double_device_read(host, memory, n) == 0);
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++)
        wrong += host[i] != (uint8_t)(2 * (i % 251));
    CHECK(wrong == 0, "%zu", wrong);
    CHECK(double_calls("cudaLaunchKernel") == 1);
    double_device_free(memory);
    free(host);
}

static void *a, *b, *c, *overlapping, *stream, *other, *elsewhere;

static void
open_operands(void)
{
    a = numbers(1, 2);
    b = numbers(3, 4);
    c = numbers(0, 0);
    overlapping = double_device_malloc(DEVICE, (N + 1) * sizeof(int32_t));
    stream = double_stream_create(DEVICE, 1);
    other = double_stream_create(DEVICE, 1);
    elsewhere = double_stream_create(DEVICE, 1);
}

/* After an error the owner of `memory` may use it again at once, on a stream that knows nothing of ours. */
static int
check_nothing_is_written_later(void *memory, int result, const struct status *status)
{
    int32_t written[N], found[N];
    if (result < 0) {
        sums_fill(COMPONENT_I32, written, N, SALT + 1);
        CHECK(double_copy_async(memory, written, sizeof written, elsewhere) == 0);
        CHECK(double_device_read(found, memory, sizeof found) == 0);
        CHECK(memcmp(found, written, sizeof found) == 0, "%s", status->text);
    }
    return result;
}

/* By way of a temporary, and with a join: every call that device_add can make. */
static int
add_with_overlap(struct status *status)
{
    int32_t host[N + 1], found[N];
    sums_fill(COMPONENT_I32, host, N + 1, SALT);
    CHECK(double_device_write(overlapping, host, sizeof host) == 0);
    struct plan plan = addition(overlapping, overlapping, (int32_t *)overlapping + 1, stream);
    plan.join[plan.joins++] = other;
    const struct device_work work = device_work_of(&plan);
    if (check_nothing_is_written_later(plan.c, device_add(&work, status), status) < 0)
        return -1;
    CHECK(double_device_read(found, plan.c, sizeof found) == 0);
    bool same = true;
    for (int i = 0; i < N; i++)
        same = same && found[i] == 2 * host[i];
    CHECK(same);
    return 0;
}

static int
run_and_close(struct graph *graph, struct status *status)
{
    const int result = check_nothing_is_written_later(c, graph_run(graph, status), status);
    graph_close(graph);
    CHECK(result < 0 || has_values(c, 4, 6));
    return result;
}

static int
add_by_a_plan(struct status *status)
{
    struct plan plan = addition(a, b, c, stream);
    struct graph *graph;
    plan.join[plan.joins++] = other;
    const struct device_work work = device_work_of(&plan);
    if (graph_open(&graph, &work, status) < 0) {
        CHECK(graph == NULL);
        return -1;
    }
    return run_and_close(graph, status);
}

static struct batch_add halves[2];

static struct device_work
batch_of_halves(void)
{
    for (int i = 0; i < 2; i++) {
        const size_t first = (size_t)i * (N / 2) * sizeof(int32_t);
        halves[i] = (struct batch_add){(char *)a + first, (char *)b + first, (char *)c + first, N / 2, COMPONENT_I32};
    }
    return (struct device_work){
        .adds = halves, .count = 2, .device = DEVICE, .stream = stream, .join = &other, .joins = 1};
}

static int
add_as_a_batch(struct status *status)
{
    const struct device_work batch = batch_of_halves();
    const int result = check_nothing_is_written_later(c, device_add(&batch, status), status);
    CHECK(result < 0 || has_values(c, 4, 6));
    return result;
}

static int
add_as_a_planned_batch(struct status *status)
{
    const struct device_work batch = batch_of_halves();
    struct graph *graph;
    return graph_open(&graph, &batch, status) < 0 ? -1 : run_and_close(graph, status);
}

TEST(every_failure_is_told_and_leaves_nothing)
{
    static const struct {
        failing_work *work;
        const char *calls[12];
    } ways[] = {
        {add_with_overlap,
         {"cudaGetDevice", "cudaEventRecord", "cudaStreamWaitEvent", "cudaMallocFromPoolAsync", "cudaLaunchKernelExC",
          "cudaMemcpyAsync"}},
        /* But for cudaGetDevice: a release that cannot even learn the current device keeps what it has. */
        {add_by_a_plan,
         {"cudaStreamIsCapturing", "cudaStreamCreateWithFlags", "cudaStreamBeginCapture", "cudaLaunchKernel",
          "cudaStreamEndCapture", "cudaGraphInstantiate", "cudaGraphUpload", "cudaStreamSynchronize", "cudaEventRecord",
          "cudaStreamWaitEvent", "cudaGraphLaunch"}},
        {add_as_a_batch, {"cudaLaunchKernel", "cudaEventRecord", "cudaStreamWaitEvent", "cudaGetDevice"}},
        {add_as_a_planned_batch,
         {"cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiate", "cudaGraphUpload",
          "cudaGraphLaunch", "cudaStreamCreateWithFlags"}},
    };
    open_operands();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        for (const char *const *call = ways[i].calls; *call; call++)
            CHECK(fail_each_call(*call, cudaErrorUnknown, ways[i].work) > 0, "way %zu, %s", i, *call);
    CHECK(cudaGetLastError() == cudaSuccess);
}
