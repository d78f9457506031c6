/* The device rungs, launched directly: every component, awkward lengths, block sizes, parameters and placements. No
 * component is left out, none added twice, and no byte touched beside the operands. Built for the double and for a GPU.
 */
#include <stdint.h>
#include <string.h>

#include "lab/base/rung.h"
#include "lab/ladder/device_rung.h"
#include "operands.h"
#include "sums.h"
#include "tests.h"

enum { LONGEST = 100003, ROOM = LONGEST * 8 + 4 * MARGIN, SLOWEST = 1025 };

static const size_t lengths[] = {0,  1,  2,   3,   4,   5,   7,   8,   9,    15,   16,   17,  31,
                                 32, 33, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 5000};
static const unsigned blocks[] = {0, 32, 96, 256, 1024};

/* A component for what is not about components: precision rungs take no float32. */
static enum component
usual_component(const struct rung *rung)
{
    return rung_takes_component(rung, COMPONENT_F32) ? COMPONENT_F32 : COMPONENT_F16;
}

/* The k-th device rung of all families, NULL past the last. */
static const struct rung *
device_rung(size_t k)
{
    const struct rung *rung;
    for (size_t i = 0; (rung = rung_at(i)); i++)
        if (rung->kind == RUNG_DEVICE && k-- == 0)
            return rung;
    return NULL;
}

/* Bytes past a 64-byte boundary at which a, b and c begin. */
struct placement {
    size_t a, b, c;
};

/* The double runs one thread at a time, so that a race is right there. */
static bool
on_double(void)
{
    struct cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0) == cudaSuccess);
    return strstr(properties.name, "double");
}

static bool
by_each_thread(const struct rung *rung)
{
    return rung->sum == SUM_ADDED_BY_EACH_THREAD || rung->sum == SUM_RACED;
}

static size_t
additions(const struct rung_call *call, const struct rung *rung)
{
    return !by_each_thread(rung) ? 1 : call->block ? call->block : rung->block;
}

/* What c was before (salt 3) where the rung adds to it, and the sums. */
static void
expect(const struct rung *rung, const struct rung_call *call, void *expected)
{
    const int times = (int)additions(call, rung);
    for (size_t i = 0; i < call->n; i++)
        sums_put(call->component, expected, i,
                 (rung_leaves(rung, call->params) == SUM_WRITTEN ? 0 : sums_value(call->component, i, 3)) +
                     times * (sums_value(call->component, i, 1) + sums_value(call->component, i, 2)));
}

static void
run(const struct rung *rung, const struct rung_call *call)
{
    const size_t bytes = call->n * component_size[call->component];
    fence(call->a, bytes);
    fence(call->b, bytes);
    CHECK(rung->launch(call) == cudaSuccess, "%s, component %d, n %zu, block %u", rung->name, call->component, call->n,
          call->block);
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
    unfence(call->a, bytes);
    unfence(call->b, bytes);
}

static void
check_rung(const struct rung *rung, struct memory *m, struct rung_call call, struct placement at)
{
    const size_t bytes = call.n * component_size[call.component];
    unsigned char *c = m->c + MARGIN + at.c;
    if (rung->sum == SUM_RACED && !on_double())
        return;
    call.a = m->a + MARGIN + at.a;
    call.b = m->b + MARGIN + at.b;
    call.c = c;
    memset(c - MARGIN, CANARY, MARGIN + bytes + MARGIN);
    sums_fill(call.component, (void *)call.a, call.n, 1);
    sums_fill(call.component, (void *)call.b, call.n, 2);
    const bool written = rung_leaves(rung, call.params) == SUM_WRITTEN;
    if (!written)
        sums_fill(call.component, c, call.n, 3);
    expect(rung, &call, m->expected);

    run(rung, &call);
    CHECK(memcmp(c, m->expected, bytes) == 0, "%s, component %d, n %zu, block %u, params %d %d %d", rung->name,
          call.component, call.n, call.block, call.params[0], call.params[1], call.params[2]);
    CHECK(all_canaries(c - MARGIN, MARGIN) && all_canaries(c + bytes, MARGIN), "%s, component %d, n %zu, block %u",
          rung->name, call.component, call.n, call.block);
    if (!written)
        return;

    /* In place a component that is added twice is wrong. */
    call.c = (void *)call.a;
    run(rung, &call);
    CHECK(memcmp(call.c, m->expected, bytes) == 0, "%s in place, component %d, n %zu, block %u, params %d %d %d",
          rung->name, call.component, call.n, call.block, call.params[0], call.params[1], call.params[2]);
}

static struct rung_call
usual_call(const struct rung *rung, enum component component, size_t n, unsigned block)
{
    struct rung_call call = {.component = component, .n = n, .block = block};
    rung_usual_params(rung, &call);
    return call;
}

TEST(every_rung_adds_every_component_at_awkward_lengths)
{
    const struct rung *rung;
    struct memory m = memory_open(ROOM);
    for (size_t k = 0; (rung = device_rung(k)); k++)
        for (enum component component = 0; component < COMPONENT_COUNT; component++)
            for (size_t i = 0; rung_takes_component(rung, component) && i < sizeof lengths / sizeof *lengths; i++)
                if (!by_each_thread(rung) || lengths[i] <= SLOWEST)
                    check_rung(rung, &m, usual_call(rung, component, lengths[i], 0), (struct placement){0});
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    memory_close(&m);
}

TEST(every_rung_adds_with_every_block_size)
{
    const struct rung *rung;
    static const size_t awkward[] = {3, 1025};
    struct memory m = memory_open(ROOM);
    for (size_t k = 0; (rung = device_rung(k)); k++)
        for (size_t block = 0; rung->block > 1 && block < sizeof blocks / sizeof *blocks; block++)
            for (size_t i = 0; i < sizeof awkward / sizeof *awkward; i++)
                check_rung(rung, &m, usual_call(rung, usual_component(rung), awkward[i], blocks[block]),
                           (struct placement){0});
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    memory_close(&m);
}

TEST(every_rung_adds_many_components)
{
    const struct rung *rung;
    struct memory m = memory_open(ROOM);
    for (size_t k = 0; (rung = device_rung(k)); k++) {
        if (by_each_thread(rung))
            continue;
        check_rung(rung, &m, usual_call(rung, usual_component(rung), LONGEST, 0), (struct placement){0});
        if (rung_takes_component(rung, COMPONENT_I8))
            check_rung(rung, &m, usual_call(rung, COMPONENT_I8, LONGEST, 0), (struct placement){0});
    }
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    memory_close(&m);
}

/* As misaligned as the rung allows: by a component, or by the alignment that it asks for. */
TEST(every_rung_adds_misaligned_operands)
{
    const struct rung *rung;
    struct memory m = memory_open(ROOM);
    for (size_t k = 0; (rung = device_rung(k)); k++)
        for (enum component component = 0; component < COMPONENT_COUNT; component++) {
            if (!rung_takes_component(rung, component))
                continue;
            const size_t size = component_size[component], step = rung->alignment > size ? rung->alignment : size;
            const struct placement places[] = {{step, 0, 0}, {0, step, 0}, {0, 0, step}, {step, 3 * step, 2 * step}};
            for (size_t i = 0; i < sizeof places / sizeof *places; i++)
                check_rung(rung, &m, usual_call(rung, component, 1023, 0), places[i]);
        }
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    memory_close(&m);
}

TEST(parameters_change_who_adds_and_not_what)
{
    static const struct {
        const char *rung;
        int params[RUNG_PARAMS];
    } cases[] = {
        {"single_thread", {1}},
        {"single_block_chunked", {1}},
        {"single_block", {0}},
        {"grid_stride", {1, 1}},
        {"grid_stride", {64, 1}},
        {"grid_stride", {4, 0}},
        {"block_range", {1, 0}},
        {"block_range", {7, 0}},
        {"block_range", {4, 1}},
        {"chunked", {1024}},
        {"chunked", {1025}},
        {"strided", {1}},
        {"strided", {3}},
        {"strided", {1024}},
        {"offset", {0}},
        {"offset", {31}},
        {"offset", {1024}},
        {"divergent", {1}},
        {"divergent", {5}},
        {"divergent", {31}},
        {"index_dim3", {32}},
        {"index_dim3", {1001}},
        {"index_divmod", {33}},
        {"index_divmod", {1000}},
        {"block_shape", {64, 4}},
        {"block_shape", {8, 8}},
        {"block_shape", {256, 1}},
        {"block_shape", {1, 256}},
        {"block_shape", {32, 8}},
        {"async_copy", {3, 0, 16}},
        {"async_copy", {2, 1, 16}},
        {"bulk_copy", {0}},
        {"waves", {1}},
        {"waves", {110}},
        {"async_copy", {3, 1, 8}},
        {"async_copy", {2, 0, 4}},
    };
    static const size_t awkward[] = {1, 3, 1000, 5000};
    struct memory m = memory_open(ROOM);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t j = 0; j < sizeof awkward / sizeof *awkward; j++) {
            struct rung_call call = {.component = COMPONENT_F32, .n = awkward[j], .block = 256};
            memcpy(call.params, cases[i].params, sizeof call.params);
            check_rung(rung_named(cases[i].rung), &m, call, (struct placement){0});
        }
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    memory_close(&m);
}

/* The components after the last vector of 16 bytes, by each way that adds them. */
TEST(every_tail_adds_what_the_vectors_leave)
{
    const struct rung *rung = rung_named("float4");
    struct memory m = memory_open(ROOM);
    for (enum component component = 0; component < COMPONENT_COUNT; component++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            for (int tail = 0; tail <= rung->params[0].most; tail++) {
                struct rung_call call = {.component = component, .n = lengths[i], .block = 256, .params = {tail}};
                if (tail < rung->params[0].most || lengths[i] % (16 / component_size[component]) == 0)
                    check_rung(rung, &m, call, (struct placement){0});
            }
    memory_close(&m);
}

TEST(a_kernel_of_whole_vectors_refuses_other_lengths)
{
    const struct rung *rung = rung_named("float4");
    struct memory m = memory_open(ROOM);
    const struct rung_call call = {
        .component = COMPONENT_F32, .a = m.a, .b = m.b, .c = m.c, .n = 1025, .params = {rung->params[0].most}};
    CHECK(rung->launch(&call) == cudaErrorInvalidValue);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    memory_close(&m);
}

/* Rows of 1024 components in steps of 96, planes of 256 rows in steps of 3: what hangs over is the next row's or
 * plane's. */
TEST(blocks_that_overhang_rows_and_planes_add_once)
{
    struct memory m = memory_open(ROOM);
    struct rung_call call = {.component = COMPONENT_I8, .n = 600000, .block = 96, .params = {96, 1}};
    check_rung(rung_named("block_shape"), &m, call, (struct placement){0});
    call.params[0] = 32;
    call.params[1] = 3;
    check_rung(rung_named("block_shape"), &m, call, (struct placement){0});
    memory_close(&m);
}

TEST(a_block_that_the_shape_does_not_divide_is_refused)
{
    const struct rung *rung = rung_named("block_shape");
    CHECK(rung->launch(&(struct rung_call){.component = COMPONENT_F32, .n = 10, .block = 96, .params = {64, 1}}) ==
          cudaErrorInvalidConfiguration);
    CHECK(rung->launch(&(struct rung_call){.component = COMPONENT_F32, .n = 10, .block = 32, .params = {64, 1}}) ==
          cudaErrorInvalidConfiguration);
}

TEST(a_component_that_a_rung_does_not_take_is_refused)
{
    CHECK(rung_named("atomic")->launch(&(struct rung_call){.component = COMPONENT_I8, .n = 10}) ==
          cudaErrorInvalidValue);
}

static int
launch_nothing(const struct rung_call *call)
{
    (void)call;
    return cudaSuccess;
}

TEST(a_rung_says_which_compute_capability_it_needs)
{
    const struct rung_call call = {.component = COMPONENT_F32};
    struct status status;
    double seconds;
    const struct rung next = {.name = "next", .kind = RUNG_DEVICE, .min_cc = 910, .launch = launch_nothing};
    CHECK(rung_time_on_device(&next, &call, &seconds, &status) == -1);
    CHECK(status.code == STATUS_VALUE);
    CHECK(strstr(status.text, "rung next needs compute capability 91.0, and cuda:0 has ") == status.text, "%s",
          status.text);
    const struct rung now = {.name = "now", .kind = RUNG_DEVICE, .min_cc = 75, .launch = launch_nothing};
    CHECK(rung_time_on_device(&now, &call, &seconds, &status) == 0);
}

TEST(a_rung_that_needs_alignment_refuses_what_is_misaligned)
{
    const struct rung *rung;
    struct memory m = memory_open(ROOM);
    int refusing = 0;
    for (size_t k = 0; (rung = device_rung(k)); k++) {
        const size_t alignment = rung->alignment;
        for (int i = 0; i < 3 && alignment; i++) {
            struct status status = {0};
            double seconds;
            struct rung_call call = usual_call(rung, usual_component(rung), 100, 0);
            call.a = m.a + (i == 0 ? alignment / 2 : 0);
            call.b = m.b + (i == 1 ? alignment / 2 : 0);
            call.c = m.c + (i == 2 ? alignment / 2 : 0);
            CHECK(rung_time_on_device(rung, &call, &seconds, &status) == -1, "%s", rung->name);
            CHECK(status.code == STATUS_VALUE && strstr(status.text, "takes memory aligned to"), "%s", status.text);
            refusing++;
        }
    }
    CHECK(refusing > 0);
    memory_close(&m);
}

TEST(every_row_is_filled)
{
    const struct rung *rung;
    for (size_t k = 0; (rung = device_rung(k)); k++) {
        CHECK(rung->kind == RUNG_DEVICE && rung->launch && !rung->run, "%s", rung->name);
        CHECK(!rung->after || rung_named(rung->after), "%s", rung->name);
        CHECK(rung->changes && rung->load && rung_takes_component(rung, usual_component(rung)), "%s", rung->name);
        CHECK(rung->bytes_per_element == (rung->sum == SUM_WRITTEN ? 12 : 16), "%s", rung->name);
        CHECK(rung->bytes_per_load >= component_size[usual_component(rung)] && rung->loads_in_flight >= 2, "%s",
              rung->name);
        for (int i = 0; i < RUNG_PARAMS && rung->params[i].name; i++)
            CHECK(rung->params[i].what && rung->params[i].least <= rung->params[i].usual &&
                      rung->params[i].usual <= rung->params[i].most,
                  "%s: %s", rung->name, rung->params[i].name);
    }
}
