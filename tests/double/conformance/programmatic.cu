/* Programmatic dependent launch. A kernel that was launched with the attribute may run before the kernel ahead of it
 * has ended: what it must wait for, and what goes wrong where it does not. */
#include "programmatic.cuh"
#include "sanitizer.h"

/* Wrong ones, which no build carries. */
__global__ static void
add_without_wait(const float *a, const float *b, float *c, uint64_t n)
{
    const uint64_t i = thread_number();
    if (i < n)
        c[i] = a[i] + b[i];
}

__global__ static void
wait_after_loads(const float *a, const float *b, float *c, uint64_t n)
{
    const uint64_t i = thread_number();
    const float x = i < n ? *static_cast<const volatile float *>(a + i) : 0;
    const float y = i < n ? *static_cast<const volatile float *>(b + i) : 0;
    wait_for_prerequisites();
    if (i < n)
        c[i] = x + y;
}

__global__ static void
wait_after_store(const float *a, const float *b, float *c, uint64_t n)
{
    const uint64_t i = thread_number();
    if (i < n)
        *static_cast<volatile float *>(c + i) = -1;
    wait_for_prerequisites();
    if (i < n)
        c[i] = a[i] + b[i];
}

/* arrays_open, with the wrong kernels loaded too: none is to be loaded in a capture. */
static struct arrays
opened()
{
    for (auto *const kernel : {add_without_wait, wait_after_loads, wait_after_store})
        CHECK(load(kernel) == cudaSuccess);
    return arrays_open();
}

/* A sanitizer runs one kernel at a time, so no kernel starts too early there. */
static bool
kernels_overlap()
{
    return !under_sanitizer();
}

static int
ahead_programmatic(const struct arrays *x, float value)
{
    return launch(write_late, N, BLOCK, launch_target(x->stream, nullptr, true), x->a, x->b, x->c, x->seen, N, value);
}

static int
launch_next(const struct arrays *x, void (*kernel)(const float *, const float *, float *, uint64_t))
{
    return launch(kernel, N, BLOCK, launch_target(x->stream, nullptr, true), x->a, x->b, x->c, N);
}

static struct rung_call
addition(const struct arrays *x)
{
    struct rung_call call = {};
    call.component = COMPONENT_F32;
    call.a = x->a;
    call.b = x->b;
    call.c = x->c;
    call.n = N;
    call.stream = x->stream;
    return call;
}

static int
queue_waiting(const struct arrays *x)
{
    const struct rung_call call = addition(x);
    return waiting_add.launch(&call);
}

static int
queue_triggering(const struct arrays *x)
{
    const struct rung_call call = addition(x);
    return triggering_add.launch(&call);
}

/* Without the attribute it begins when the one ahead has ended, and its wait falls through. */
static int
queue_serial(const struct arrays *x)
{
    const struct rung_call call = addition(x);
    return serial_add.launch(&call);
}

static int
queue_without_wait(const struct arrays *x)
{
    return launch_next(x, add_without_wait);
}

static int
queue_wait_after_loads(const struct arrays *x)
{
    return launch_next(x, wait_after_loads);
}

static int
queue_wait_after_store(const struct arrays *x)
{
    return launch_next(x, wait_after_store);
}

TEST(a_kernel_that_waits_comes_after_the_one_ahead)
{
    if (!supported())
        return;
    const struct arrays x = opened();
    CHECK(rounds_wrong(&x, queue_waiting) == 0);
    arrays_close(&x);
}

TEST(a_kernel_that_triggers_comes_after_the_one_ahead)
{
    if (!supported())
        return;
    const struct arrays x = opened();
    CHECK(rounds_wrong(&x, queue_triggering) == 0);
    arrays_close(&x);
}

TEST(a_kernel_without_the_attribute_comes_after_the_one_ahead)
{
    if (!supported())
        return;
    const struct arrays x = opened();
    CHECK(rounds_wrong(&x, queue_serial) == 0);
    arrays_close(&x);
}

TEST(a_kernel_that_does_not_wait_is_there_too_early)
{
    if (!supported() || !kernels_overlap())
        return;
    const struct arrays x = opened();
    CHECK(rounds_wrong(&x, queue_without_wait) > 0);
    arrays_close(&x);
}

TEST(a_kernel_that_waits_after_its_loads_has_old_values)
{
    if (!supported() || !kernels_overlap())
        return;
    const struct arrays x = opened();
    CHECK(rounds_wrong(&x, queue_wait_after_loads) > 0);
    arrays_close(&x);
}

TEST(a_kernel_that_waits_after_a_store_has_overwritten_what_was_to_be_read)
{
    if (!supported() || !kernels_overlap())
        return;
    const struct arrays x = opened();
    CHECK(rounds_wrong(&x, queue_wait_after_store) > 0);
    arrays_close(&x);
}

/* The same in a graph: the capture of such a launch is an edge that does not wait either. */
static int
graph_rounds_wrong(const struct arrays *x, queue_next *queue)
{
    int wrong = 0;
    for (int round = 1; round <= ROUNDS; round++) {
        const float value = static_cast<float>(round);
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        CHECK(cudaStreamBeginCapture(x->stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
        CHECK(ahead(x, value) == cudaSuccess);
        CHECK(queue(x) == cudaSuccess);
        CHECK(cudaStreamEndCapture(x->stream, &graph) == cudaSuccess);
        CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
        CHECK(cudaGraphLaunch(exec, x->stream) == cudaSuccess);
        CHECK(cudaStreamSynchronize(x->stream) == cudaSuccess);
        CHECK(cudaGraphExecDestroy(exec) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess);
        wrong += others(x->c, 3 * value) || others(x->seen, 3 * (value - 1));
    }
    return wrong;
}

TEST(a_captured_kernel_that_waits_comes_after_the_one_ahead)
{
    if (!supported())
        return;
    const struct arrays x = opened();
    CHECK(graph_rounds_wrong(&x, queue_waiting) == 0);
    arrays_close(&x);
    const struct arrays y = opened();
    CHECK(graph_rounds_wrong(&y, queue_triggering) == 0);
    arrays_close(&y);
}

TEST(a_captured_kernel_that_does_not_wait_is_there_too_early)
{
    if (!supported() || !kernels_overlap())
        return;
    const struct arrays x = opened();
    CHECK(graph_rounds_wrong(&x, queue_without_wait) > 0);
    arrays_close(&x);
}

/* A chain of which every link overlaps with the next: each wait is for one kernel, and through it for all before. */
TEST(a_chain_of_kernels_that_wait_is_in_order)
{
    if (!supported())
        return;
    const struct arrays x = opened();
    for (int round = 1; round <= ROUNDS; round++) {
        const float value = static_cast<float>(round);
        CHECK(ahead(&x, -value) == cudaSuccess);
        CHECK(ahead_programmatic(&x, value) == cudaSuccess);
        CHECK(queue_triggering(&x) == cudaSuccess);
        struct rung_call again = addition(&x);
        again.a = x.c;
        for (int i = 0; i < 4; i++)
            CHECK(triggering_add.launch(&again) == cudaSuccess);
        CHECK(cudaStreamSynchronize(x.stream) == cudaSuccess);
        CHECK(others(x.c, 11 * value) == 0, "round %d", round);
    }
    arrays_close(&x);
}

/* Waiting for the stream waits for all of it, also where the last kernel waited for nothing. */
TEST(the_streams_end_is_after_what_a_kernel_did_not_wait_for)
{
    if (!supported())
        return;
    const struct arrays x = opened();
    for (int round = 1; round <= ROUNDS; round++) {
        const float value = static_cast<float>(round);
        CHECK(ahead(&x, value) == cudaSuccess);
        CHECK(queue_without_wait(&x) == cudaSuccess);
        CHECK(cudaStreamSynchronize(x.stream) == cudaSuccess);
        CHECK(others(x.a, value) == 0 && others(x.b, 2 * value) == 0, "round %d", round);
    }
    arrays_close(&x);
}

/* And so does a kernel without the attribute. */
TEST(an_ordinary_kernel_is_after_what_the_one_ahead_did_not_wait_for)
{
    if (!supported())
        return;
    const struct arrays x = opened();
    for (int round = 1; round <= ROUNDS; round++) {
        const float value = static_cast<float>(round);
        CHECK(ahead(&x, value) == cudaSuccess);
        CHECK(queue_without_wait(&x) == cudaSuccess);
        CHECK(queue_serial(&x) == cudaSuccess);
        CHECK(cudaStreamSynchronize(x.stream) == cudaSuccess);
        CHECK(others(x.c, 3 * value) == 0, "round %d", round);
    }
    arrays_close(&x);
}
