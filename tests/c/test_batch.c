/* batch.h's half of the device on the CUDA-runtime double: sums, launches, the order of streams, and what is left when
 * a CUDA call fails. */
#include <cuda_runtime_api.h>

#include "check.h"
#include "cuda/kernels.h"
#include "double.h"
#include "failures.h"
#include "gpu/add.h"
#include "gpu/device.h"
#include "gpu/graph.h"
#include "sums.h"

enum { ADDS = 40, SALT_A = 1, SALT_B = 2, SEEDS = 20 };

static size_t
size_of(int i)
{
    static const size_t sizes[] = {1, 3, 17, 64, 1000, 5001, 40000};
    return sizes[(size_t)i * 3 % (sizeof sizes / sizeof *sizes)];
}

static char *
filled(enum component component, size_t n, size_t skip, unsigned salt)
{
    const size_t bytes = (n + skip) * component_size[component];
    char *host = calloc(1, bytes), *memory = double_device_malloc(0, bytes);
    if (salt)
        sums_fill(component, host + skip * component_size[component], n, salt);
    CHECK(double_device_write(memory, host, bytes) == 0);
    free(host);
    return memory;
}

/* Additions of every component, each operand at an alignment of its own. */
static void
open_adds(struct batch_add *adds, char **memory)
{
    for (int i = 0; i < ADDS; i++) {
        const enum component component = (enum component)(i % COMPONENT_COUNT);
        const size_t n = size_of(i), skip[] = {(size_t)i % 5, (size_t)i % 3, (size_t)i % 2};
        char *operands[3];
        for (int k = 0; k < 3; k++) {
            memory[3 * i + k] = filled(component, n, skip[k], k == 2 ? 0 : (unsigned)(k ? SALT_B : SALT_A));
            operands[k] = memory[3 * i + k] + skip[k] * component_size[component];
        }
        adds[i] =
            (struct batch_add){.a = operands[0], .b = operands[1], .c = operands[2], .n = n, .component = component};
    }
}

static void
close_adds(char **memory)
{
    for (int i = 0; i < 3 * ADDS; i++)
        double_device_free(memory[i]);
}

static bool
holds_sum(const struct batch_add *add)
{
    const size_t bytes = add->n * component_size[add->component];
    void *expected = malloc(bytes), *found = malloc(bytes);
    sums_expect(add->component, expected, add->n, SALT_A, SALT_B);
    const bool same = double_device_read(found, add->c, bytes) == 0 && memcmp(expected, found, bytes) == 0;
    free(expected);
    free(found);
    return same;
}

static void
adds_every_component_size_and_alignment_in_one_launch(void)
{
    struct batch_add adds[ADDS];
    char *memory[3 * ADDS];
    struct status status;
    open_adds(adds, memory);
    const struct device_batch batch = {.adds = adds, .count = ADDS};
    CHECK(device_add_batch(&batch, &status) == 0, "%s", status.text);
    for (int i = 0; i < ADDS; i++)
        CHECK(holds_sum(&adds[i]), "addition %d", i);
    CHECK(double_calls("cudaLaunchKernel") == 1);
    CHECK(double_faults() == 0);
    close_adds(memory);
}

static void
nothing_is_queued_for_nothing(void)
{
    struct status status;
    const struct device_batch batch = {.count = 0};
    CHECK(device_add_batch(&batch, &status) == 0);
    CHECK(double_calls("cudaLaunchKernel") == 0 && double_calls("cudaGetDevice") == 0);
}

static void
runs_after_and_before_every_other_stream(void)
{
    enum { N = 100, STREAMS = 3 };
    int32_t ones[N], host[N];
    struct status status;
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        double_reset(seed);
        struct batch_add adds[STREAMS];
        void *late[STREAMS], *streams[STREAMS], *source = double_device_malloc(0, sizeof ones);
        void *stream = double_stream_create(0, 1);
        CHECK(double_device_write(source, ones, sizeof ones) == 0);
        for (int i = 0; i < STREAMS; i++) {
            streams[i] = double_stream_create(0, 1);
            late[i] = double_device_malloc(0, sizeof ones);
            CHECK(double_copy_async(late[i], source, sizeof ones, streams[i]) == 0);
            adds[i] = (struct batch_add){.a = late[i], .b = late[i], .c = late[i], .n = N, .component = COMPONENT_I32};
        }
        const struct device_batch batch = {
            .adds = adds, .count = STREAMS, .stream = stream, .join = streams, .joins = STREAMS};
        struct graph *graph = NULL;
        CHECK(graph_of_batch(&graph, &batch, &status) == 0, "%s", status.text);
        CHECK(device_add_batch(&batch, &status) == 0, "%s", status.text);
        CHECK(graph_run(graph, &status) == 0, "%s", status.text);
        for (int i = 0; i < STREAMS; i++) {
            CHECK(double_copy_async(host, late[i], sizeof host, streams[i]) == 0);
            CHECK(double_stream_synchronize(streams[i]) == 0);
            CHECK(host[0] == 4 && host[N - 1] == 4, "seed %u stream %d: %d", seed, i, (int)host[0]);
        }
        graph_close(graph);
    }
    CHECK(double_faults() == 0);
}

/* As tests/c/test_graph.c has it for one addition. */
static void
a_capture_leaves_out_the_streams_that_are_no_part_of_it(void)
{
    struct batch_add adds[ADDS];
    char *memory[3 * ADDS];
    struct status status;
    open_adds(adds, memory);
    void *stream = double_stream_create(0, 1), *others[] = {double_stream_create(0, 1), NULL};
    const struct device_batch batch = {.adds = adds, .count = ADDS, .stream = stream, .join = others, .joins = 2};
    struct graph *graph = NULL;
    cudaGraph_t captured = NULL;
    CHECK(graph_of_batch(&graph, &batch, &status) == 0, "%s", status.text);
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
    CHECK(graph_run(graph, &status) == 0, "%s", status.text);
    CHECK(cudaStreamEndCapture(stream, &captured) == cudaSuccess);
    CHECK(cudaGraphDestroy(captured) == cudaSuccess);
    CHECK(double_calls("cudaGraphLaunch") == 0 && double_faults() == 0);
    graph_close(graph);
    close_adds(memory);
}

/* More bytes than the kernel's table has bits for. */
static void
a_long_addition_is_cut_into_pieces(void)
{
    const size_t n = (size_t)BATCH_MOST_BYTES + 1000;
    struct status status;
    uint8_t *host = malloc(n), *memory = double_device_malloc(0, n);
    for (size_t i = 0; i < n; i++)
        host[i] = (uint8_t)(i % 251);
    CHECK(double_device_write(memory, host, n) == 0);
    const struct batch_add add = {.a = memory, .b = memory, .c = memory, .n = n, .component = COMPONENT_I8};
    const struct device_batch batch = {.adds = &add, .count = 1};
    CHECK(device_add_batch(&batch, &status) == 0, "%s", status.text);
    CHECK(double_device_read(host, memory, n) == 0);
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++)
        wrong += host[i] != (uint8_t)(2 * (i % 251));
    CHECK(wrong == 0, "%zu", wrong);
    CHECK(double_calls("cudaLaunchKernel") == 1);
    double_device_free(memory);
    free(host);
}

static struct device_batch failing;
static void *elsewhere;

static size_t
first_bytes(size_t i)
{
    const size_t bytes = failing.adds[i].n * component_size[failing.adds[i].component];
    return bytes < 4000 ? bytes : 4000;
}

/* After an error the sums' owner may use their memory again at once, on a stream that knows nothing of the batch's. */
static void
check_nothing_is_written_later(void)
{
    static unsigned char filler[4000], found[4000];
    for (size_t i = 0; i < failing.count; i++) {
        memset(filler, (int)i + 1, sizeof filler);
        CHECK(double_copy_async(failing.adds[i].c, filler, first_bytes(i), elsewhere) == 0);
    }
    for (size_t i = 0; i < failing.count; i++) {
        memset(filler, (int)i + 1, sizeof filler);
        CHECK(double_device_read(found, failing.adds[i].c, first_bytes(i)) == 0);
        CHECK(memcmp(found, filler, first_bytes(i)) == 0, "addition %zu", i);
    }
}

static int
looked_at(int result)
{
    if (result < 0)
        check_nothing_is_written_later();
    double_synchronize(0);
    return result;
}

static int
add_once(struct status *status)
{
    return looked_at(device_add_batch(&failing, status));
}

static int
plan_and_add(struct status *status)
{
    struct graph *graph;
    if (graph_of_batch(&graph, &failing, status) < 0)
        return -1;
    const int result = looked_at(graph_run(graph, status));
    graph_close(graph);
    return result;
}

static void
a_failing_call_is_told_and_leaks_nothing(void)
{
    static const char *const calls[] = {"cudaLaunchKernel", "cudaEventRecord", "cudaStreamWaitEvent", "cudaGetDevice"};
    static const char *const planned[] = {"cudaStreamBeginCapture", "cudaStreamEndCapture",
                                          "cudaGraphInstantiate",   "cudaGraphUpload",
                                          "cudaGraphLaunch",        "cudaStreamCreateWithFlags"};
    struct batch_add adds[ADDS];
    char *memory[3 * ADDS];
    open_adds(adds, memory);
    void *stream = double_stream_create(0, 1), *other = double_stream_create(0, 1);
    elsewhere = double_stream_create(0, 1);
    failing = (struct device_batch){.adds = adds, .count = ADDS, .stream = stream, .join = &other, .joins = 1};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        CHECK(fail_each_call(calls[i], cudaErrorUnknown, add_once) > 0, "%s", calls[i]);
    for (size_t i = 0; i < sizeof planned / sizeof *planned; i++)
        CHECK(fail_each_call(planned[i], cudaErrorUnknown, plan_and_add) > 0, "%s", planned[i]);
    close_adds(memory);
}

int
main(void)
{
    RUN(adds_every_component_size_and_alignment_in_one_launch);
    RUN(nothing_is_queued_for_nothing);
    RUN(runs_after_and_before_every_other_stream);
    RUN(a_capture_leaves_out_the_streams_that_are_no_part_of_it);
    RUN(a_long_addition_is_cut_into_pieces);
    RUN(a_failing_call_is_told_and_leaks_nothing);
    return check_report();
}
