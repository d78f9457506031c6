/* device.h and stream.h on the CUDA-runtime double: what is refused, what is added, in which order, and what is left
 * when a CUDA call fails. */
#include <cuda_runtime_api.h>

#include "check.h"
#include "device.h"
#include "double.h"
#include "failures.h"
#include "memory.h"
#include "probes.h"
#include "runtime.h"
#include "stream.h"
#include "sums.h"

enum { SEEDS = 100, SALT_A = 1, SALT_B = 2, SALT_OTHER = 3 };

static void *
foreign_copy(int device, const void *host, size_t bytes)
{
    void *memory = double_device_malloc(device, bytes);
    CHECK(double_device_write(memory, host, bytes) == 0);
    return memory;
}

/* A device array of n lanes, with its host copy's content. */
static void *
foreign_operand(int device, enum lane lane, size_t n, unsigned salt)
{
    void *host = malloc(n * lane_size[lane]);
    sums_fill(lane, host, n, salt);
    void *memory = foreign_copy(device, host, n * lane_size[lane]);
    free(host);
    return memory;
}

static int
holds_sum(const void *memory, enum lane lane, size_t n, unsigned salt_a, unsigned salt_b)
{
    const size_t bytes = n * lane_size[lane];
    void *expected = malloc(bytes), *found = malloc(bytes);
    sums_expect(lane, expected, n, salt_a, salt_b);
    int same = double_device_read(found, memory, bytes) == 0 && memcmp(expected, found, bytes) == 0;
    free(expected);
    free(found);
    return same;
}

static void
describes_the_devices(void)
{
    struct status status;
    struct device_facts facts;
    int count = 0, current = -1, driver, runtime_version;
    device_versions(&driver, &runtime_version);
    CHECK(driver == CUDART_VERSION && runtime_version == CUDART_VERSION);
    CHECK(!atomic_load(&runtime.cuda_started));
    CHECK(device_count(&count, &status) == 0 && count == 2);
    CHECK(atomic_load(&runtime.cuda_started));
    CHECK(device_current(&current, &status) == 0 && current == 0);
    CHECK(device_facts(1, &facts, &status) == 0);
    CHECK(facts.cc_major == 9 && facts.multiprocessors > 0 && facts.memory > 0 && facts.l2 > 0);
    CHECK(facts.memory_clock_khz > 0 && facts.memory_bus_bits > 0 && strstr(facts.name, "double"));
}

static void
refuses_ordinals_that_do_not_exist(void)
{
    struct status status;
    struct device_facts facts;
    void *memory;
    const int ordinals[] = {-2, 2, 1000};
    for (int i = 0; i < 3; i++) {
        CHECK(device_check_ordinal(ordinals[i], &status) < 0 && status.code == STATUS_VALUE);
        CHECK(strstr(status.text, "sees 2 GPUs"), "%s", status.text);
        CHECK(device_facts(ordinals[i], &facts, &status) < 0 && status.code == STATUS_VALUE);
        CHECK(device_allocate(ordinals[i], NULL, 16, &memory, &status) < 0 && status.code == STATUS_VALUE);
    }
    CHECK(device_check_ordinal(1, &status) == 0);
}

static void
accepts_pointers_inside_allocations(void)
{
    struct status status;
    int device = -1;
    char *memory = double_device_malloc(1, 4096);
    CHECK(device_check_pointer(memory, 4096, "a", &device, &status) == 0 && device == 1);
    CHECK(device_check_pointer(memory + 4095, 1, "a", &device, &status) == 0);
    CHECK(double_device_split(memory, 1024) == 0);
    CHECK(device_check_pointer(memory + 1000, 3000, "a", &device, &status) == 0);
    CHECK(double_calls("cudaGetDevice") == 0);
}

static void
refuses_pointers_that_no_kernel_may_use(void)
{
    struct status status;
    int device;
    char ordinary[64];
    char *memory = double_device_malloc(0, 4096), *freed = double_device_malloc(0, 4096);
    double_device_free(freed);
    const struct {
        const void *pointer;
        size_t bytes;
        const char *says;
    } cases[] = {
        {NULL, 16, "null"},
        {ordinary, 16, "not memory that CUDA knows"},
        {freed, 16, "not memory that CUDA knows"},
        {memory - 1, 16, "not memory that CUDA knows"},
        {memory + 4096, 1, "not memory that CUDA knows"},
        {memory, 4097, "4097 bytes"},
        {memory + 4000, 200, "after 96 bytes"},
        {memory, SIZE_MAX, "address space"},
        {memory, (size_t)1 << 62, "after 4096 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(device_check_pointer(cases[i].pointer, cases[i].bytes, "out", &device, &status) < 0, "case %zu", i);
        CHECK(status.code == STATUS_VALUE && strstr(status.text, cases[i].says), "%s", status.text);
        CHECK(strncmp(status.text, "out: ", 5) == 0, "%s", status.text);
    }
}

static void
adds_every_lane_at_every_alignment(void)
{
    struct status status;
    const size_t sizes[] = {1, 3, 17, 255, 1024, 5001};
    for (int lane = 0; lane < LANE_COUNT; lane++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (size_t offset = 0; offset < 3; offset++) {
                const size_t n = sizes[s], skip = offset * lane_size[lane];
                char *host = calloc(n + 2, lane_size[lane]);
                sums_fill(lane, host + skip, n, SALT_A);
                char *a = foreign_copy(0, host, (n + 2) * lane_size[lane]);
                char *b = foreign_operand(0, lane, n, SALT_B), *c = double_device_malloc(0, n * lane_size[lane]);
                const struct plan plan = {
                    .route = ROUTE_DEVICE, .lane = lane, .n = n, .a = a + skip, .b = b, .c = c, .device = 0};
                CHECK(device_add(&plan, &status) == 0, "%s", status.text);
                CHECK(holds_sum(c, lane, n, SALT_A, SALT_B), "lane %d n %zu offset %zu", lane, n, offset);
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
    void *a = foreign_operand(0, LANE_F32, 1000, SALT_A), *b = foreign_operand(0, LANE_F32, 1000, SALT_B);
    const struct plan plan = {.route = ROUTE_DEVICE, .lane = LANE_F32, .n = 1000, .a = a, .b = b, .c = a, .device = 0};
    CHECK(device_add(&plan, &status) == 0);
    CHECK(holds_sum(a, LANE_F32, 1000, SALT_A, SALT_B));
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
                sums_fill(LANE_I32, host, N + ROOM, SALT_A);
                const int from = down ? shift : 0, to = down ? 0 : shift;
                for (int i = 0; i < N; i++)
                    expected[i] = host[from + i] + host[from + i];
                int32_t *memory = foreign_copy(0, host, sizeof host);
                const struct plan plan = {.route = ROUTE_DEVICE,
                                          .lane = LANE_I32,
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
    const struct plan plan = {.route = ROUTE_DEVICE, .lane = LANE_F32, .device = 0};
    CHECK(device_add(&plan, &status) == 0);
    CHECK(double_calls("cudaLaunchKernelExC") == 0 && double_calls("cudaGetDevice") == 0);
}

static void
the_thread_keeps_its_current_device(void)
{
    struct status status;
    int current = -1;
    void *a = foreign_operand(1, LANE_F32, 64, SALT_A), *b = foreign_operand(1, LANE_F32, 64, SALT_B);
    const struct plan plan = {.route = ROUTE_DEVICE, .lane = LANE_F32, .n = 64, .a = a, .b = b, .c = a, .device = 1};
    CHECK(device_add(&plan, &status) == 0);
    CHECK(cudaGetDevice(&current) == cudaSuccess && current == 0);
    CHECK(holds_sum(a, LANE_F32, 64, SALT_A, SALT_B));
    double_fail("cudaLaunchKernelExC", 1, cudaErrorUnknown, 0);
    CHECK(device_add(&plan, &status) < 0 && status.code == STATUS_CUDA);
    CHECK(cudaGetDevice(&current) == cudaSuccess && current == 0);
    CHECK(device_check_pointer(a, 256, "a", &current, &status) == 0 && current == 1);
}

static void
minus_one_is_the_current_device(void)
{
    struct status status;
    void *a = foreign_operand(1, LANE_F32, 64, SALT_A), *b = foreign_operand(1, LANE_F32, 64, SALT_B);
    const struct plan plan = {.route = ROUTE_DEVICE, .lane = LANE_F32, .n = 64, .a = a, .b = b, .c = a, .device = -1};
    CHECK(cudaSetDevice(1) == cudaSuccess);
    CHECK(device_add(&plan, &status) == 0, "%s", status.text);
    CHECK(holds_sum(a, LANE_F32, 64, SALT_A, SALT_B));
}

/* a and b are written late on streams of their own, and a is overwritten right after the call on its own stream. */
static void
joins_order_the_kernel_both_ways(void)
{
    enum { N = 2000 };
    struct status status;
    float a_host[N], b_host[N], other[N];
    sums_fill(LANE_F32, a_host, N, SALT_A);
    sums_fill(LANE_F32, b_host, N, SALT_B);
    sums_fill(LANE_F32, other, N, SALT_OTHER);
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
                                  .lane = LANE_F32,
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
        CHECK(holds_sum(c, LANE_F32, N, SALT_A, SALT_B), "seed %u", seed);
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
    CHECK(stream_check_device(0, streams[0], &status) < 0 && status.code == STATUS_VALUE, "%s", status.text);
}

static void
a_stream_that_is_gone_is_a_value_error(void)
{
    struct status status;
    void *gone = double_stream_create(0, 1), *stream = double_stream_create(0, 1);
    CHECK(double_stream_destroy(gone) == 0);
    CHECK(stream_join(0, gone, stream, &status) < 0 && status.code == STATUS_VALUE, "%s", status.text);
    CHECK(stream_join(0, stream, gone, &status) < 0 && status.code == STATUS_VALUE);
    CHECK(cudaGetLastError() == cudaSuccess);
}

static void *failing_memory;
static void *failing_streams[3];

/* An overlapping add with a join: every call that device_add can make. */
static int
overlapping_add(struct status *status)
{
    enum { N = 500 };
    int32_t host[N + 1], expected[N], found[N];
    sums_fill(LANE_I32, host, N + 1, SALT_A);
    for (int i = 0; i < N; i++)
        expected[i] = 2 * host[i];
    CHECK(double_device_write(failing_memory, host, sizeof host) == 0);
    const struct plan plan = {.route = ROUTE_DEVICE,
                              .lane = LANE_I32,
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
        sums_fill(LANE_I32, other, N + 1, SALT_OTHER);
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

static const char *starting_call;

static void
failure_of_the_starting_call(void)
{
    struct status status;
    void *memory = NULL;
    double_fail(starting_call, 1, cudaErrorUnknown, 0);
    CHECK(device_allocate(1, NULL, 64, &memory, &status) < 0, "%s", starting_call);
    CHECK(status.code == STATUS_CUDA && status.cuda == cudaErrorUnknown && memory == NULL);
    CHECK(live_now().events == 0 && live_now().device_blocks == 0);
    CHECK(device_allocate(1, NULL, 64, &memory, &status) == 0, "after %s: %s", starting_call, status.text);
    device_release(1, NULL, memory, 64);
    int current;
    CHECK(cudaGetDevice(&current) == cudaSuccess && current == 0);
}

static void
a_device_that_did_not_start_is_tried_again(void)
{
    static const char *const calls[] = {
        "cudaGetDeviceCount",
        "cudaGetDriverEntryPointByVersion",
        "cudaGetDevice",
        "cudaSetDevice",
        "cudaMemGetInfo",
        "cudaDeviceGetAttribute",
        "cudaMemPoolCreate",
        "cudaMemPoolSetAttribute",
        "cudaEventCreateWithFlags",
        "cudaFuncGetAttributes",
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        starting_call = calls[i];
        RUN(failure_of_the_starting_call);
    }
}

static void
no_gpu_is_told_from_an_old_driver(void)
{
    struct status status;
    void *memory;
    int count;
    double_devices(0);
    CHECK(device_count(&count, &status) < 0 && status.code == STATUS_NO_GPU, "%s", status.text);
    double_driver(0);
    CHECK(device_count(&count, &status) < 0 && status.code == STATUS_NO_GPU);
    CHECK(strstr(status.text, "no NVIDIA driver") && status.cuda == cudaErrorInsufficientDriver, "%s", status.text);
    double_driver(12020);
    CHECK(device_allocate(0, NULL, 64, &memory, &status) < 0 && status.code == STATUS_DRIVER_TOO_OLD);
    CHECK(strstr(status.text, "12.2") && strstr(status.text, "13.0"), "%s", status.text);
    CHECK(cudaGetLastError() == cudaSuccess);
    double_driver(CUDART_VERSION);
    double_devices(2);
    CHECK(device_count(&count, &status) == 0 && count == 2);
}

static void
a_sticky_error_is_a_lost_device(void)
{
    struct status status;
    void *memory = NULL;
    CHECK(device_allocate(0, NULL, 64, &memory, &status) == 0);
    double_fail("cudaMallocFromPoolAsync", 1, cudaErrorLaunchFailure, 0);
    void *second;
    CHECK(device_allocate(0, NULL, 64, &second, &status) < 0 && status.code == STATUS_DEVICE_LOST);
    CHECK(device_allocate(0, NULL, 64, &second, &status) < 0 && status.code == STATUS_DEVICE_LOST);
    CHECK(strstr(status.text, "no device call of this process works"), "%s", status.text);
    device_release(0, NULL, memory, 64);
}

static void
each_error_has_its_code(void)
{
    static const struct {
        int error;
        enum status_code code;
    } rows[] = {
        {cudaErrorMemoryAllocation, STATUS_MEMORY},
        {cudaErrorInitializationError, STATUS_FORKED},
        {cudaErrorNoDevice, STATUS_NO_GPU},
        {cudaErrorInvalidDevice, STATUS_VALUE},
        {cudaErrorInvalidResourceHandle, STATUS_VALUE},
        {cudaErrorSystemNotReady, STATUS_CUDA},
        {cudaErrorDevicesUnavailable, STATUS_CUDA},
        {cudaErrorUnknown, STATUS_CUDA},
        {cudaErrorIllegalAddress, STATUS_DEVICE_LOST},
        {cudaErrorLaunchTimeout, STATUS_DEVICE_LOST},
        {cudaErrorAssert, STATUS_DEVICE_LOST},
        {cudaErrorHardwareStackError, STATUS_DEVICE_LOST},
        {cudaErrorIllegalInstruction, STATUS_DEVICE_LOST},
        {cudaErrorMisalignedAddress, STATUS_DEVICE_LOST},
        {cudaErrorInvalidAddressSpace, STATUS_DEVICE_LOST},
        {cudaErrorInvalidPc, STATUS_DEVICE_LOST},
        {cudaErrorLaunchFailure, STATUS_DEVICE_LOST},
        {cudaErrorNotYetImplemented, STATUS_CUDA},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct status status;
        CHECK(device_status(&status, rows[i].error, "cudaSomething") == -1);
        CHECK(status.code == rows[i].code && status.cuda == rows[i].error, "%d: %s", rows[i].error, status.text);
        CHECK(strstr(status.text, "cudaSomething") && strstr(status.text, cudaGetErrorName(rows[i].error)));
    }
}

static void
a_forked_child_is_refused_by_name(void)
{
    struct status status;
    void *memory = NULL, *pinned = NULL, *more;
    int count;
    CHECK(device_allocate(0, NULL, 64, &memory, &status) == 0);
    CHECK(pinned_allocate(64, &pinned, &status) == 0);
    const pid_t child = fork();
    if (child == 0) {
        CHECK(device_count(&count, &status) < 0 && status.code == STATUS_FORKED);
        CHECK(strstr(status.text, "spawn"), "%s", status.text);
        CHECK(device_allocate(0, NULL, 64, &more, &status) < 0 && status.code == STATUS_FORKED);
        CHECK(pinned_allocate(64, &more, &status) < 0 && status.code == STATUS_FORKED);
        device_release(0, NULL, memory, 64);
        pinned_release(pinned, 64);
        _exit(0);
    }
    int how = -1;
    CHECK(waitpid(child, &how, 0) == child && how == 0);
    device_release(0, NULL, memory, 64);
    pinned_release(pinned, 64);
    CHECK(memory_counts().device_blocks == 0 && memory_counts().pinned_blocks == 0);
}

static void
a_child_forked_before_cuda_may_use_it(void)
{
    const pid_t child = fork();
    if (child == 0) {
        struct status status;
        int count;
        CHECK(device_count(&count, &status) == 0 && count == 2);
        _exit(0);
    }
    int how = -1;
    CHECK(waitpid(child, &how, 0) == child && how == 0);
}

static int
measure_device(struct status *status)
{
    struct memory_rates rates;
    if (limits_device(1, 1 << 20, 1, &rates, status) < 0)
        return -1;
    CHECK(rates.read > 0 && rates.write > 0 && rates.copy > 0);
    return 0;
}

static int
measure_l2(struct status *status)
{
    struct memory_rates rates;
    if (limits_l2(1, 1 << 18, 1, &rates, status) < 0)
        return -1;
    CHECK(rates.read > 0 && rates.write > 0);
    return 0;
}

static int
measure_latency(struct status *status)
{
    struct memory_latency latency = {0};
    if (limits_latency(1, 1, &latency, status) < 0)
        return -1;
    CHECK(latency.l1 > 0 && latency.page > 0 && latency.l2 > 0 && latency.dram > 0 && latency.stream > 0 &&
          latency.atomic > 0);
    return 0;
}

static int
measure_launches(struct status *status)
{
    struct launch_limits limits = {0};
    if (limits_launch(1, 1, &limits, status) < 0)
        return -1;
    CHECK(limits.kernel > 0 && limits.block >= 0 && limits.turnaround >= 0 && limits.queued >= 0 && limits.node >= 0 &&
          limits.issued > 0);
    return 0;
}

static void
no_probe_leaves_anything(void)
{
    static const struct {
        const char *name;
        int (*measure)(struct status *status);
    } probes[] = {
        {"device", measure_device},
        {"l2", measure_l2},
        {"latency", measure_latency},
        {"launch", measure_launches},
    };
    static const char *const calls[] = {
        "cudaStreamCreateWithFlags", "cudaEventCreate",       "cudaMallocFromPoolAsync", "cudaEventRecord",
        "cudaLaunchKernel",          "cudaStreamSynchronize", "cudaEventElapsedTime",
    };
    for (size_t p = 0; p < sizeof probes / sizeof *probes; p++)
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
            CHECK(fail_some_calls(calls[i], cudaErrorUnknown, probes[p].measure) > 0, "%s %s", probes[p].name,
                  calls[i]);
    /* Without cudaStreamEndCapture: what it does not end, nothing ends. */
    static const char *const of_a_graph[] = {"cudaStreamBeginCapture", "cudaGraphInstantiate", "cudaGraphUpload",
                                             "cudaGraphLaunch"};
    for (size_t i = 0; i < sizeof of_a_graph / sizeof *of_a_graph; i++)
        CHECK(fail_some_calls(of_a_graph[i], cudaErrorUnknown, measure_launches) > 0, "%s", of_a_graph[i]);
    CHECK(live_now().streams == 0 && live_now().device_blocks == 0);
}

int
main(void)
{
    RUN(describes_the_devices);
    RUN(refuses_ordinals_that_do_not_exist);
    RUN(accepts_pointers_inside_allocations);
    RUN(refuses_pointers_that_no_kernel_may_use);
    RUN(adds_every_lane_at_every_alignment);
    RUN(out_may_be_an_input);
    RUN(partial_overlap_is_as_if_the_inputs_were_read_first);
    RUN(nothing_is_queued_for_nothing);
    RUN(the_thread_keeps_its_current_device);
    RUN(minus_one_is_the_current_device);
    RUN(joins_order_the_kernel_both_ways);
    RUN(a_stream_joins_itself_without_a_call);
    RUN(a_stream_of_another_device_is_refused);
    RUN(a_stream_that_is_gone_is_a_value_error);
    RUN(every_failure_is_told_and_leaves_nothing);
    RUN(a_device_that_did_not_start_is_tried_again);
    RUN(no_gpu_is_told_from_an_old_driver);
    RUN(a_sticky_error_is_a_lost_device);
    RUN(each_error_has_its_code);
    RUN(a_forked_child_is_refused_by_name);
    RUN(a_child_forked_before_cuda_may_use_it);
    RUN(no_probe_leaves_anything);
    return check_report();
}
