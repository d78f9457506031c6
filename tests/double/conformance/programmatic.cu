/* Programmatic dependent launch. A kernel that was launched with the attribute may run before the kernel ahead of it
 * has ended: what it must wait for, and what goes wrong where it does not.
 *
 * The kernel ahead lets others begin at once, is busy for a while, and then writes a and b and reads c: every order in
 * which the addition behind it could touch the three shows. */
#include "../../c/check.h"
#include "cuda/kernels.h"
#include "cuda/lab/latency/programmatic.cuh"
#include "sanitizer.h"

/* Few enough blocks that the kernel behind finds room; 2^20 cycles are half a millisecond. */
enum { N = 1000, ROUNDS = 32, BUSY_CYCLES = 1 << 20 };

__global__ static void
write_late(float *a, float *b, const float *c, float *seen, unsigned n, float value)
{
    trigger_dependents();
    wait_for_prerequisites();
    const int64_t begin = cycle_counter();
    while (cycle_counter() - begin < BUSY_CYCLES) {
    }
    const uint64_t i = thread_number();
    if (i < n) {
        a[i] = value;
        b[i] = 2 * value;
        seen[i] = c[i];
    }
}

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

struct arrays {
    float *a, *b, *c, *seen;
    cudaStream_t stream;
};

/* Queues the kernel behind, as it is to be tested. */
typedef int queue_behind(const struct arrays *arrays);

/* An older device has no such launches: there is nothing to hold. */
static bool
supported()
{
    int major = 0;
    CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess);
    return major >= 9;
}

/* A sanitizer runs one kernel at a time, so no kernel starts too early there. */
static bool
kernels_overlap()
{
    return !under_sanitizer();
}

static struct arrays
arrays_open()
{
    struct arrays arrays;
    float **const each[] = {&arrays.a, &arrays.b, &arrays.c, &arrays.seen};
    for (float **array : each) {
        CHECK(cudaMalloc(reinterpret_cast<void **>(array), N * sizeof(float)) == cudaSuccess);
        CHECK(cudaMemset(*array, 0, N * sizeof(float)) == cudaSuccess);
    }
    CHECK(cudaStreamCreateWithFlags(&arrays.stream, cudaStreamNonBlocking) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);

    /* No kernel is to be loaded in a capture, nor behind another one that it would have to wait for. */
    struct rung_call call = {};
    call.component = COMPONENT_F32;
    for (const small_add *add : {&waiting_add, &triggering_add})
        CHECK(add->load(&call) == cudaSuccess);
    for (auto *const kernel : {add_without_wait, wait_after_loads, wait_after_store})
        CHECK(load(kernel) == cudaSuccess);
    CHECK(load(write_late) == cudaSuccess);
    return arrays;
}

static void
arrays_close(const struct arrays *arrays)
{
    CHECK(cudaStreamDestroy(arrays->stream) == cudaSuccess);
    for (float *array : {arrays->a, arrays->b, arrays->c, arrays->seen})
        CHECK(cudaFree(array) == cudaSuccess);
}

static int
ahead(const struct arrays *x, float value)
{
    return launch(write_late, N, SMALL_BLOCK, x->stream, x->a, x->b, x->c, x->seen, N, value);
}

static int
ahead_programmatic(const struct arrays *x, float value)
{
    return launch_programmatic(write_late, N, SMALL_BLOCK, x->stream, x->a, x->b, x->c, x->seen, N, value);
}

static int
behind(const struct arrays *x, void (*kernel)(const float *, const float *, float *, uint64_t))
{
    return launch_programmatic(kernel, N, SMALL_BLOCK, x->stream, x->a, x->b, x->c, N);
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

/* How many of the array's elements are not `value`. */
static int
others(const float *device, float value)
{
    static float host[N];
    CHECK(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost) == cudaSuccess);
    int count = 0;
    for (float each : host)
        count += each != value;
    return count;
}

/* In how many rounds the kernel behind added other values than those that were written ahead of it, or was there before
 * c had been read. */
static int
rounds_wrong(const struct arrays *x, queue_behind *queue)
{
    int wrong = 0;
    for (int round = 1; round <= ROUNDS; round++) {
        const float value = static_cast<float>(round);
        CHECK(ahead(x, value) == cudaSuccess);
        CHECK(queue(x) == cudaSuccess);
        CHECK(cudaStreamSynchronize(x->stream) == cudaSuccess);
        wrong += others(x->c, 3 * value) || others(x->seen, 3 * (value - 1));
    }
    return wrong;
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
    return behind(x, add_without_wait);
}

static int
queue_wait_after_loads(const struct arrays *x)
{
    return behind(x, wait_after_loads);
}

static int
queue_wait_after_store(const struct arrays *x)
{
    return behind(x, wait_after_store);
}

/* What vecadd.add launches. */
static int
queue_tuned(const struct arrays *x)
{
    struct add_call call = {};
    call.component = COMPONENT_F32;
    call.a = x->a;
    call.b = x->b;
    call.c = x->c;
    call.n = N;
    call.stream = x->stream;
    call.programmatic = true;
    return add_launch(&call);
}

/* The same with one-element shifts, so that each vector is put together of two. */
static int
queue_tuned_misaligned(const struct arrays *x)
{
    struct add_call call = {};
    call.component = COMPONENT_F32;
    call.a = x->a;
    call.b = x->b + 1;
    call.c = x->c;
    call.n = N - 1;
    call.stream = x->stream;
    call.programmatic = true;
    const cudaError_t error = add_launch(&call);
    if (error != cudaSuccess)
        return error;
    call.a = x->a + N - 1;
    call.b = x->b + N - 1;
    call.c = x->c + N - 1;
    call.n = 1;
    return add_launch(&call);
}

static void
test_tuned_comes_after_the_one_ahead(void)
{
    if (!supported())
        return;
    CHECK(add_load() == cudaSuccess);
    for (bool legacy : {false, true})
        for (queue_behind *queue : {queue_tuned, queue_tuned_misaligned}) {
            struct arrays x = arrays_open();
            const cudaStream_t created = x.stream;
            x.stream = legacy ? nullptr : created;
            CHECK(rounds_wrong(&x, queue) == 0, "legacy %d, misaligned %d", legacy, queue == queue_tuned_misaligned);
            x.stream = created;
            arrays_close(&x);
        }
}

#if !VECADD_DOUBLE
/* Neither waits nor touches what tuned does. */
__global__ static void
pass_by(float *elsewhere, bool trigger)
{
    if (trigger)
        trigger_dependents();
    if (thread_number() == 0)
        *elsewhere = 1;
}
#endif

/* A kernel's wait is for the one ahead, which has not ended before all ahead of it have: also where it did not wait for
 * them, as other libraries' kernels may. The double does not promise that; a GPU keeps it. */
static void
test_tuned_comes_after_all_that_is_ahead_of_a_kernel_that_waits_for_nothing(void)
{
#if !VECADD_DOUBLE
    if (!supported())
        return;
    CHECK(add_load() == cudaSuccess && load(pass_by) == cudaSuccess);
    struct arrays x = arrays_open();
    const cudaStream_t created = x.stream;
    for (int round = 1; round <= 2 * ROUNDS; round++) {
        const float value = static_cast<float>(round);
        x.stream = round % 2 ? created : nullptr;
        CHECK(ahead(&x, value) == cudaSuccess);
        CHECK(launch_programmatic(pass_by, 1, 32, x.stream, x.seen, round % 4 < 2) == cudaSuccess);
        CHECK(queue_tuned(&x) == cudaSuccess);
        CHECK(cudaStreamSynchronize(x.stream) == cudaSuccess);
        CHECK(others(x.c, 3 * value) == 0, "round %d", round);
    }
    x.stream = created;
    arrays_close(&x);
#endif
}

/* The legacy default stream is also behind what the blocking streams hold, and they are behind it. */
static void
test_tuned_on_the_legacy_stream_comes_after_the_blocking_streams_and_before_what_they_do_next(void)
{
    if (!supported())
        return;
    CHECK(add_load() == cudaSuccess);
    struct arrays legacy = arrays_open(), blocking = legacy;
    legacy.stream = nullptr;
    CHECK(cudaStreamCreate(&blocking.stream) == cudaSuccess);
    for (int round = 1; round <= ROUNDS; round++) {
        const float value = static_cast<float>(round);
        CHECK(queue_tuned(&legacy) == cudaSuccess);
        CHECK(ahead(&blocking, value) == cudaSuccess);
        CHECK(queue_tuned(&legacy) == cudaSuccess);
        CHECK(ahead(&blocking, -value) == cudaSuccess);
        CHECK(cudaDeviceSynchronize() == cudaSuccess);
        CHECK(others(legacy.c, 3 * value) == 0 && others(legacy.seen, 3 * value) == 0, "round %d", round);
    }
    CHECK(cudaStreamDestroy(blocking.stream) == cudaSuccess);
    CHECK(cudaFree(legacy.a) == cudaSuccess && cudaFree(legacy.b) == cudaSuccess);
    CHECK(cudaFree(legacy.c) == cudaSuccess && cudaFree(legacy.seen) == cudaSuccess);
}

static void
test_a_kernel_that_waits_comes_after_the_one_ahead(void)
{
    if (!supported())
        return;
    const struct arrays x = arrays_open();
    CHECK(rounds_wrong(&x, queue_waiting) == 0);
    arrays_close(&x);
}

static void
test_a_kernel_that_triggers_comes_after_the_one_ahead(void)
{
    if (!supported())
        return;
    const struct arrays x = arrays_open();
    CHECK(rounds_wrong(&x, queue_triggering) == 0);
    arrays_close(&x);
}

static void
test_a_kernel_without_the_attribute_comes_after_the_one_ahead(void)
{
    if (!supported())
        return;
    const struct arrays x = arrays_open();
    CHECK(rounds_wrong(&x, queue_serial) == 0);
    arrays_close(&x);
}

static void
test_a_kernel_that_does_not_wait_is_there_too_early(void)
{
    if (!supported() || !kernels_overlap())
        return;
    const struct arrays x = arrays_open();
    CHECK(rounds_wrong(&x, queue_without_wait) > 0);
    arrays_close(&x);
}

static void
test_a_kernel_that_waits_after_its_loads_has_old_values(void)
{
    if (!supported() || !kernels_overlap())
        return;
    const struct arrays x = arrays_open();
    CHECK(rounds_wrong(&x, queue_wait_after_loads) > 0);
    arrays_close(&x);
}

static void
test_a_kernel_that_waits_after_a_store_has_overwritten_what_was_to_be_read(void)
{
    if (!supported() || !kernels_overlap())
        return;
    const struct arrays x = arrays_open();
    CHECK(rounds_wrong(&x, queue_wait_after_store) > 0);
    arrays_close(&x);
}

/* The same in a graph: the capture of such a launch is an edge that does not wait either. */
static int
graph_rounds_wrong(const struct arrays *x, queue_behind *queue)
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

static void
test_a_captured_kernel_that_waits_comes_after_the_one_ahead(void)
{
    if (!supported())
        return;
    const struct arrays x = arrays_open();
    CHECK(graph_rounds_wrong(&x, queue_waiting) == 0);
    arrays_close(&x);
    const struct arrays y = arrays_open();
    CHECK(graph_rounds_wrong(&y, queue_triggering) == 0);
    arrays_close(&y);
}

static void
test_a_captured_kernel_that_does_not_wait_is_there_too_early(void)
{
    if (!supported() || !kernels_overlap())
        return;
    const struct arrays x = arrays_open();
    CHECK(graph_rounds_wrong(&x, queue_without_wait) > 0);
    arrays_close(&x);
}

/* A chain of which every link overlaps with the next: each wait is for one kernel, and through it for all before. */
static void
test_a_chain_of_kernels_that_wait_is_in_order(void)
{
    if (!supported())
        return;
    const struct arrays x = arrays_open();
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

/* Whoever waits for the stream waits for all of it, also where the last kernel waited for nothing. */
static void
test_the_streams_end_is_after_what_a_kernel_did_not_wait_for(void)
{
    if (!supported())
        return;
    const struct arrays x = arrays_open();
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
static void
test_an_ordinary_kernel_is_after_what_the_one_ahead_did_not_wait_for(void)
{
    if (!supported())
        return;
    const struct arrays x = arrays_open();
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

int
main(void)
{
    RUN(test_a_kernel_that_waits_comes_after_the_one_ahead);
    RUN(test_a_kernel_that_triggers_comes_after_the_one_ahead);
    RUN(test_tuned_comes_after_the_one_ahead);
    RUN(test_tuned_comes_after_all_that_is_ahead_of_a_kernel_that_waits_for_nothing);
    RUN(test_tuned_on_the_legacy_stream_comes_after_the_blocking_streams_and_before_what_they_do_next);
    RUN(test_a_kernel_without_the_attribute_comes_after_the_one_ahead);
    RUN(test_a_kernel_that_does_not_wait_is_there_too_early);
    RUN(test_a_kernel_that_waits_after_its_loads_has_old_values);
    RUN(test_a_kernel_that_waits_after_a_store_has_overwritten_what_was_to_be_read);
    RUN(test_a_captured_kernel_that_waits_comes_after_the_one_ahead);
    RUN(test_a_captured_kernel_that_does_not_wait_is_there_too_early);
    RUN(test_a_chain_of_kernels_that_wait_is_in_order);
    RUN(test_the_streams_end_is_after_what_a_kernel_did_not_wait_for);
    RUN(test_an_ordinary_kernel_is_after_what_the_one_ahead_did_not_wait_for);
    return check_report();
}
