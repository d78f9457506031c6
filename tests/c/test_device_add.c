/* device_add and the streams that it joins on the CUDA-runtime double: what is added, in which order, and what is left
 * when a CUDA call fails. */
#include <cuda_runtime_api.h>
#include <pthread.h>

#include "check.h"
#include "device_memory.h"
#include "double.h"
#include "failures.h"
#include "gpu/add.h"
#include "gpu/device.h"
#include "gpu/stream.h"
#include "sums.h"

enum { SEEDS = 100, SALT_A = 1, SALT_B = 2, SALT_OTHER = 3 };

static void *
interop_copy(int device, const void *host, size_t bytes)
{
    void *memory = double_device_malloc(device, bytes);
    CHECK(double_device_write(memory, host, bytes) == 0);
    return memory;
}

/* A device array of n components, with its host copy's content. */
static void *
interop_operand(int device, enum component component, size_t n, unsigned salt)
{
    void *host = malloc(n * component_size[component]);
    sums_fill(component, host, n, salt);
    void *memory = interop_copy(device, host, n * component_size[component]);
    free(host);
    return memory;
}

static int
holds_sum(const void *memory, enum component component, size_t n, unsigned salt_a, unsigned salt_b)
{
    const size_t bytes = n * component_size[component];
    void *expected = malloc(bytes), *found = malloc(bytes);
    sums_expect(component, expected, n, salt_a, salt_b);
    int same = double_device_read(found, memory, bytes) == 0 && memcmp(expected, found, bytes) == 0;
    free(expected);
    free(found);
    return same;
}

static void
adds_every_component_at_every_alignment(void)
{
    struct status status;
    const size_t sizes[] = {1, 3, 17, 255, 1024, 5001};
    for (int component = 0; component < COMPONENT_COUNT; component++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (size_t offset = 0; offset < 3; offset++) {
                const size_t n = sizes[s], skip = offset * component_size[component];
                char *host = calloc(n + 2, component_size[component]);
                sums_fill(component, host + skip, n, SALT_A);
                char *a = interop_copy(0, host, (n + 2) * component_size[component]);
                char *b = interop_operand(0, component, n, SALT_B),
                     *c = double_device_malloc(0, n * component_size[component]);
                const struct plan plan = {
                    .route = ROUTE_DEVICE, .component = component, .n = n, .a = a + skip, .b = b, .c = c, .device = 0};
                CHECK(device_add(&plan, &status) == 0, "%s", status.text);
                CHECK(holds_sum(c, component, n, SALT_A, SALT_B), "component %d n %zu offset %zu", component, n,
                      offset);
                double_device_free(a);
                double_device_free(b);
                double_device_free(c);
                free(host);
            }
    CHECK(double_faults() == 0);
}

static void
out_may_be_an_input(void)
{
    struct status status;
    void *a = interop_operand(0, COMPONENT_F32, 1000, SALT_A), *b = interop_operand(0, COMPONENT_F32, 1000, SALT_B);
    const struct plan plan = {
        .route = ROUTE_DEVICE, .component = COMPONENT_F32, .n = 1000, .a = a, .b = b, .c = a, .device = 0};
    CHECK(device_add(&plan, &status) == 0);
    CHECK(holds_sum(a, COMPONENT_F32, 1000, SALT_A, SALT_B));
    CHECK(double_calls("cudaMallocFromPoolAsync") == 0);
}

static void
partial_overlap_is_as_if_the_inputs_were_read_first(void)
{
    struct status status;
    enum { N = 3000, ROOM = 100 };
    int32_t host[N + ROOM], expected[N], found[N];
    for (int shift = 1; shift <= ROOM; shift += 33)
        for (int down = 0; down < 2; down++)
            for (unsigned seed = 0; seed < 10; seed++) {
                double_reset(seed);
                sums_fill(COMPONENT_I32, host, N + ROOM, SALT_A);
                const int from = down ? shift : 0, to = down ? 0 : shift;
                for (int i = 0; i < N; i++)
                    expected[i] = host[from + i] + host[from + i];
                int32_t *memory = interop_copy(0, host, sizeof host);
                const struct plan plan = {.route = ROUTE_DEVICE,
                                          .component = COMPONENT_I32,
                                          .n = N,
                                          .a = memory + from,
                                          .b = memory + from,
                                          .c = memory + to,
                                          .device = 0};
                CHECK(device_add(&plan, &status) == 0, "%s", status.text);
                CHECK(double_device_read(found, memory + to, sizeof found) == 0);
                CHECK(memcmp(found, expected, sizeof found) == 0, "shift %d down %d", shift, down);
                double_device_free(memory);
            }
    CHECK(live_now().device_blocks == 0);
}

static void
nothing_is_queued_for_nothing(void)
{
    struct status status;
    const struct plan plan = {.route = ROUTE_DEVICE, .component = COMPONENT_F32, .device = 0};
    CHECK(device_add(&plan, &status) == 0);
    CHECK(double_calls("cudaLaunchKernelExC") == 0 && double_calls("cudaGetDevice") == 0);
}

static void
the_thread_keeps_its_current_device(void)
{
    struct status status;
    int current = -1;
    void *a = interop_operand(1, COMPONENT_F32, 64, SALT_A), *b = interop_operand(1, COMPONENT_F32, 64, SALT_B);
    const struct plan plan = {
        .route = ROUTE_DEVICE, .component = COMPONENT_F32, .n = 64, .a = a, .b = b, .c = a, .device = 1};
    CHECK(device_add(&plan, &status) == 0);
    CHECK(cudaGetDevice(&current) == cudaSuccess && current == 0);
    CHECK(holds_sum(a, COMPONENT_F32, 64, SALT_A, SALT_B));
    double_fail("cudaLaunchKernelExC", 1, cudaErrorUnknown, 0);
    CHECK(device_add(&plan, &status) < 0 && status.code == STATUS_CUDA);
    CHECK(cudaGetDevice(&current) == cudaSuccess && current == 0);
    CHECK(check_pointer(a, 256, "a", &current, &status) == 0 && current == 1);
}

static void
minus_one_is_the_current_device(void)
{
    struct status status;
    void *a = interop_operand(1, COMPONENT_F32, 64, SALT_A), *b = interop_operand(1, COMPONENT_F32, 64, SALT_B);
    const struct plan plan = {
        .route = ROUTE_DEVICE, .component = COMPONENT_F32, .n = 64, .a = a, .b = b, .c = a, .device = -1};
    CHECK(cudaSetDevice(1) == cudaSuccess);
    CHECK(device_add(&plan, &status) == 0, "%s", status.text);
    CHECK(holds_sum(a, COMPONENT_F32, 64, SALT_A, SALT_B));
}

/* a and b are written late on streams of their own, and a is overwritten right after the call on its own stream. */
static void
joins_order_the_kernel_both_ways(void)
{
    enum { N = 2000 };
    struct status status;
    float a_host[N], b_host[N], other[N];
    sums_fill(COMPONENT_F32, a_host, N, SALT_A);
    sums_fill(COMPONENT_F32, b_host, N, SALT_B);
    sums_fill(COMPONENT_F32, other, N, SALT_OTHER);
    void *streams[3];
    for (int i = 0; i < 3; i++)
        streams[i] = double_stream_create(0, 1);
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        double_reset(seed);
        void *a = double_device_malloc(0, sizeof a_host), *b = double_device_malloc(0, sizeof b_host);
        void *c = double_device_malloc(0, sizeof a_host);
        CHECK(double_copy_async(a, a_host, sizeof a_host, streams[1]) == 0);
        CHECK(double_copy_async(b, b_host, sizeof b_host, streams[2]) == 0);
        const struct plan plan = {.route = ROUTE_DEVICE,
                                  .component = COMPONENT_F32,
                                  .n = N,
                                  .a = a,
                                  .b = b,
                                  .c = c,
                                  .device = 0,
                                  .stream = streams[0],
                                  .join = {streams[1], streams[2]},
                                  .joins = 2};
        CHECK(device_add(&plan, &status) == 0, "%s", status.text);
        CHECK(double_copy_async(a, other, sizeof other, streams[1]) == 0);
        CHECK(double_copy_async(b, other, sizeof other, streams[2]) == 0);
        CHECK(holds_sum(c, COMPONENT_F32, N, SALT_A, SALT_B), "seed %u", seed);
        double_device_free(a);
        double_device_free(b);
        double_device_free(c);
    }
    CHECK(double_faults() == 0);
}

static void
a_stream_joins_itself_without_a_call(void)
{
    struct status status;
    void *stream = double_stream_create(0, 1);
    CHECK(stream_join(0, stream, stream, &status) == 0);
    CHECK(double_calls("cudaEventRecord") == 0);
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
    CHECK(stream_join(0, joiner->before, joiner->after, &status) == 0, "%s", status.text);
    CHECK(double_copy_async(joiner->y, joiner->x, 4, joiner->after) == 0);
    return NULL;
}

/* Each stream waits for the thread's own other one, although another thread joins two streams between the record of an
 * event and the wait for it. */
static void
threads_may_join_streams_at_once(void)
{
    enum { JOINERS = 3, ROUNDS = 15 };
    struct joiner joiners[JOINERS];
    pthread_t threads[JOINERS];
    const int32_t value = 7;
    pthread_barrier_t start;
    CHECK(pthread_barrier_init(&start, NULL, JOINERS) == 0);
    for (int i = 0; i < JOINERS; i++) {
        joiners[i] = (struct joiner){.source = double_device_malloc(0, 4),
                                     .before = double_stream_create(0, 1),
                                     .after = double_stream_create(0, 1),
                                     .start = &start};
        CHECK(double_device_write(joiners[i].source, &value, 4) == 0);
    }
    for (unsigned seed = 0; seed < ROUNDS; seed++) {
        double_reset(seed);
        double_delay("cudaStreamWaitEvent", 300);
        for (int i = 0; i < JOINERS; i++) {
            joiners[i].x = double_device_malloc(0, 4);
            joiners[i].y = double_device_malloc(0, 4);
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

static void
a_stream_of_another_device_is_refused(void)
{
    struct status status;
    void *streams[] = {double_stream_create(0, 1), double_stream_create(1, 1)};
    void *const anywhere[] = {NULL, cudaStreamLegacy, cudaStreamPerThread};
    for (int device = 0; device < 2; device++) {
        CHECK(stream_check_device(device, streams[device], &status) == 0, "%s", status.text);
        CHECK(stream_check_device(device, streams[1 - device], &status) < 0 && status.code == STATUS_VALUE);
        for (int i = 0; i < 3; i++)
            CHECK(stream_check_device(device, anywhere[i], &status) == 0, "%s", status.text);
    }
    CHECK(double_calls("cudaStreamGetDevice") == 4);
    for (int device = 0; device < 2; device++)
        double_stream_destroy(streams[device]);
}

static void *failing_memory;
static void *failing_streams[3];

/* An overlapping add with a join: every call that device_add can make. */
static int
overlapping_add(struct status *status)
{
    enum { N = 500 };
    int32_t host[N + 1], expected[N], found[N];
    sums_fill(COMPONENT_I32, host, N + 1, SALT_A);
    for (int i = 0; i < N; i++)
        expected[i] = 2 * host[i];
    CHECK(double_device_write(failing_memory, host, sizeof host) == 0);
    const struct plan plan = {.route = ROUTE_DEVICE,
                              .component = COMPONENT_I32,
                              .n = N,
                              .a = failing_memory,
                              .b = failing_memory,
                              .c = (int32_t *)failing_memory + 1,
                              .device = 1,
                              .stream = failing_streams[0],
                              .join = {failing_streams[1]},
                              .joins = 1};
    if (device_add(&plan, status) < 0) {
        /* The operands' owner may use them again at once, on a stream that knows nothing of ours. */
        int32_t other[N + 1], kept[N + 1];
        sums_fill(COMPONENT_I32, other, N + 1, SALT_OTHER);
        CHECK(double_copy_async(failing_memory, other, sizeof other, failing_streams[2]) == 0);
        CHECK(double_device_read(kept, failing_memory, sizeof kept) == 0);
        CHECK(memcmp(kept, other, sizeof kept) == 0, "%s", status->text);
        return -1;
    }
    CHECK(double_device_read(found, (int32_t *)failing_memory + 1, sizeof found) == 0);
    CHECK(memcmp(found, expected, sizeof found) == 0);
    return 0;
}

static void
every_failure_is_told_and_leaves_nothing(void)
{
    static const struct {
        const char *call;
        int error;
    } failures[] = {
        {"cudaGetDevice", cudaErrorUnknown},
        {"cudaEventRecord", cudaErrorInvalidResourceHandle},
        {"cudaStreamWaitEvent", cudaErrorInvalidResourceHandle},
        {"cudaMallocFromPoolAsync", cudaErrorUnknown},
        {"cudaLaunchKernelExC", cudaErrorInvalidConfiguration},
        {"cudaMemcpyAsync", cudaErrorUnknown},
    };
    failing_memory = double_device_malloc(1, 501 * sizeof(int32_t));
    failing_streams[0] = double_stream_create(1, 1);
    failing_streams[1] = double_stream_create(1, 1);
    failing_streams[2] = double_stream_create(1, 1);
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
        CHECK(fail_each_call(failures[i].call, failures[i].error, overlapping_add) > 0, "%s", failures[i].call);
    CHECK(cudaGetLastError() == cudaSuccess);
}

int
main(void)
{
    RUN(adds_every_component_at_every_alignment);
    RUN(out_may_be_an_input);
    RUN(partial_overlap_is_as_if_the_inputs_were_read_first);
    RUN(nothing_is_queued_for_nothing);
    RUN(the_thread_keeps_its_current_device);
    RUN(minus_one_is_the_current_device);
    RUN(joins_order_the_kernel_both_ways);
    RUN(a_stream_joins_itself_without_a_call);
    RUN(threads_may_join_streams_at_once);
    RUN(a_stream_of_another_device_is_refused);
    RUN(every_failure_is_told_and_leaves_nothing);
    return check_report();
}
