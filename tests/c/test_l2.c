/* What `tuned` asks of the L2 (csrc/gpu/launch_configs.h): that large inputs stay in it until their end is added, and
 * that their end is then given back, line by line, without a line of anybody else. */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "cuda/kernels.h"
#include "double.h"
#include "gpu/launch_configs.h"
#include "operands.h"
#include "sums.h"
#include "tests.h"

enum { LINE = 128, ROOM = 1 << 20, MIB = 1 << 20 };

struct lines {
    size_t evict_last, demoted;
};

static struct lines
lines_of(const unsigned char *start, size_t bytes)
{
    struct lines lines;
    double_l2(start, bytes, &lines.evict_last, &lines.demoted);
    return lines;
}

static unsigned char *
up_to_line(unsigned char *address)
{
    return (unsigned char *)(((uintptr_t)address + LINE - 1) / LINE * LINE);
}

static unsigned char *
down_to_line(unsigned char *address)
{
    return (unsigned char *)((uintptr_t)address / LINE * LINE);
}

/* Whole lines in the operand's last `demoted` bytes are demoted after their last load, and none that it shares. */
static void
check_operand(unsigned char *operand, size_t bytes, size_t demoted, const char *what)
{
    unsigned char *end = operand + bytes, *from = demoted < bytes ? end - demoted : operand;
    unsigned char *first = up_to_line(from), *last = down_to_line(end);
    if (first < last) {
        const struct lines whole = lines_of(first, (size_t)(last - first));
        CHECK(whole.evict_last == 0, "%s: %zu lines are not demoted", what, whole.evict_last);
        CHECK(demoted == 0 || whole.demoted > 0, "%s", what);
        /* All that was loaded with evict_last: every line but those of the components that one thread each adds. */
        CHECK(demoted == 0 || whole.demoted + 2 >= (size_t)(last - first) / LINE, "%s: %zu of %zu lines", what,
              whole.demoted, (size_t)(last - first) / LINE);
    }
    CHECK(lines_of(down_to_line(operand) - MARGIN, MARGIN).demoted == 0, "%s", what);
    if (down_to_line(operand) != operand)
        CHECK(lines_of(down_to_line(operand), 1).demoted == 0, "%s: the line that it begins within", what);
    if (last != end)
        CHECK(lines_of(last, 1).demoted == 0, "%s: the line that it ends within", what);
    CHECK(lines_of(up_to_line(end), MARGIN).demoted == 0, "%s", what);
}

struct placement {
    size_t a, b, c; /* bytes past a line */
};

static void
check_call(struct memory *m, enum component component, struct placement at, size_t n, unsigned block, size_t demoted)
{
    const size_t size = component_size[component], bytes = n * size;
    unsigned char *a = up_to_line(m->a + MARGIN) + LINE + at.a, *b = up_to_line(m->b + MARGIN) + LINE + at.b,
                  *c = up_to_line(m->c + MARGIN) + LINE + at.c;
    sums_fill(component, a, n, 1);
    sums_fill(component, b, n, 2);
    sums_expect(component, m->expected, n, 1, 2);
    memset(c - MARGIN, CANARY, MARGIN + bytes + MARGIN);
    double_reset((unsigned)(n + at.a + block));

    const struct add_call call = {.component = component,
                                  .a = a,
                                  .b = b,
                                  .c = c,
                                  .n = n,
                                  .block = block,
                                  .loads = LOADS_EVICT_LAST,
                                  .demoted = demoted};
    fence(a, bytes);
    fence(b, bytes);
    CHECK(add_launch(&call) == cudaSuccess);
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
    unfence(a, bytes);
    unfence(b, bytes);

    char what[120];
    snprintf(what, sizeof what, "component %d, bytes past a line %zu %zu %zu, n %zu, block %u, demoted %zu", component,
             at.a, at.b, at.c, n, block, demoted);
    CHECK(memcmp(c, m->expected, bytes) == 0, "%s", what);
    CHECK(all_canaries(c - MARGIN, MARGIN) && all_canaries(c + bytes, MARGIN), "%s", what);
    check_operand(a, bytes, demoted, what);
    check_operand(b, bytes, demoted, what);
    CHECK(lines_of(c, bytes).evict_last == 0 && lines_of(c, bytes).demoted == 0, "%s: c is only written", what);
    CHECK(double_faults() == 0, "%s", what);
}

TEST(all_of_small_operands_is_demoted_for_every_alignment)
{
    static const size_t places[] = {0, 16, 48, 112, 4, 68, 124, 8};
    static const size_t lengths[] = {1, 31, 32, 100, 1000, 5003};
    struct memory m = memory_open(ROOM);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        for (size_t j = 0; j < sizeof places / sizeof *places; j++)
            for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
                const struct placement at = {places[i], places[j], places[(i + 3 * j) % 8]};
                check_call(&m, COMPONENT_F32, at, lengths[k], i % 2 ? 64 : 256, ROOM);
            }
    memory_close(&m);
}

TEST(every_component_is_demoted)
{
    struct memory m = memory_open(ROOM);
    for (enum component component = 0; component < COMPONENT_COUNT; component++) {
        const size_t size = component_size[component];
        check_call(&m, component, (struct placement){0, 0, 0}, 40000 / size, 768, ROOM);
        check_call(&m, component, (struct placement){size, 0, 3 * size}, 40000 / size + 1, 768, ROOM);
    }
    memory_close(&m);
}

/* Blocks run in an order that each seed chooses: a line that two blocks share is demoted after the later one. */
TEST(lines_between_blocks_are_demoted_in_any_order)
{
    struct memory m = memory_open(ROOM);
    for (size_t n = 8000; n < 8040; n++)
        check_call(&m, COMPONENT_F32, (struct placement){4, 48, 0}, n, 32, ROOM);
    memory_close(&m);
}

TEST(only_the_end_is_demoted)
{
    enum { N = 24000, END = 64 << 10, SLACK = 34 * 16 + LINE };
    struct memory m = memory_open(ROOM);
    for (size_t i = 0; i < 4 * 32; i++) { /* each place of the first such vector in its warp */
        const struct placement at = {i % 4 * 4 + 48, 0, 0};
        const size_t bytes = (N + i) * sizeof(float), start = bytes - END - SLACK;
        check_call(&m, COMPONENT_F32, at, N + i, 64, END);
        const struct lines kept = lines_of(up_to_line(m.a + MARGIN) + LINE + at.a, start);
        CHECK(kept.demoted == 0, "%zu lines", kept.demoted);
        CHECK(kept.evict_last >= start / LINE - 1, "%zu lines", kept.evict_last);
    }
    memory_close(&m);
}

TEST(nothing_is_demoted_where_nothing_is_to_be)
{
    struct memory m = memory_open(ROOM);
    check_call(&m, COMPONENT_F32, (struct placement){0, 0, 0}, 0, 256, ROOM);
    float *a = (float *)m.a, *b = (float *)m.b, *c = (float *)m.c;
    memset(a, 0, ROOM);
    memset(b, 0, ROOM);
    struct add_call call = {.component = COMPONENT_F32, .a = a, .b = b, .c = c, .n = 1000, .loads = LOADS_EVICT_LAST};
    CHECK(add_launch(&call) == cudaSuccess && cudaStreamSynchronize(NULL) == cudaSuccess);
    CHECK(lines_of(m.a, ROOM).demoted == 0 && lines_of(m.a, ROOM).evict_last == (4000 + LINE - 1) / LINE);

    double_reset(1);
    call.loads = LOADS_PLAIN;
    call.demoted = ROOM;
    CHECK(add_launch(&call) == cudaSuccess && cudaStreamSynchronize(NULL) == cudaSuccess);
    CHECK(lines_of(m.a, ROOM).demoted == 0 && lines_of(m.a, ROOM).evict_last == 0);
    memory_close(&m);
}

/* The link's call, which alone asks for flags, neither keeps nor demotes lines, and is right for any alignment. */
TEST(a_call_with_flags_loads_plainly)
{
    enum { N = 1000 };
    struct memory m = memory_open(ROOM);
    for (size_t shift = 0; shift < 16; shift += 4) {
        unsigned char *a = m.a + shift;
        sums_fill(COMPONENT_F32, a, N, 1);
        sums_fill(COMPONENT_F32, m.b, N, 2);
        sums_expect(COMPONENT_F32, m.expected, N, 1, 2);
        const struct add_call call = {.component = COMPONENT_F32,
                                      .a = a,
                                      .b = m.b,
                                      .c = m.c,
                                      .n = N,
                                      .fp_flags = m.flags,
                                      .loads = LOADS_EVICT_LAST,
                                      .demoted = ROOM};
        CHECK(add_launch(&call) == cudaSuccess && cudaStreamSynchronize(NULL) == cudaSuccess);
        CHECK(memcmp(m.c, m.expected, N * sizeof(float)) == 0, "shift %zu", shift);
        CHECK(lines_of(m.a, ROOM).evict_last == 0 && lines_of(m.a, ROOM).demoted == 0);
    }
    memory_close(&m);
}

static struct add_call
chosen(int capability, size_t l2, enum component component, size_t n)
{
    const struct launch_configs launch_configs = launch_configs_shipped(capability, l2);
    struct add_call call = {.component = component, .n = n};
    launch_config_choose(&launch_configs, &call);
    return call;
}

/* An L2 of 50 MiB has a table of its own; what is a little larger goes by an H200's. */
TEST(large_calls_keep_and_demote_lines_where_that_was_measured)
{
    static const struct {
        int l2; /* in MiB */
        size_t n;
        enum add_loads loads;
        size_t demoted; /* in MiB of an L2 of 60 */
        unsigned block;
    } cases[] = {
        {60, 1 << 20, LOADS_PLAIN, 0, 256},        {60, 1 << 24, LOADS_PLAIN, 0, 1024},
        {60, 1 << 25, LOADS_EVICT_LAST, 30, 1024}, {60, 1 << 28, LOADS_EVICT_LAST, 24, 768},
        {50, 1 << 22, LOADS_PLAIN, 0, 256},        {50, 1 << 24, LOADS_EVICT_LAST, 30, 768},
        {50, 1 << 28, LOADS_EVICT_LAST, 24, 1024}, {51, 1 << 24, LOADS_PLAIN, 0, 1024},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t l2 = (size_t)cases[i].l2 * MIB;
        const struct add_call call = chosen(90, l2, COMPONENT_F32, cases[i].n);
        CHECK(call.loads == cases[i].loads && call.block == cases[i].block, "case %zu: %u threads", i, call.block);
        CHECK(call.demoted == l2 / 60 * cases[i].demoted, "case %zu: %zu bytes", i, call.demoted);
        CHECK(launch_configs_shipped(90, l2).source == LAUNCH_CONFIGS_MEASURED);
    }
}

TEST(dtypes_that_move_the_same_bytes_go_the_same_way)
{
    for (size_t bytes = 1 << 20; bytes <= (size_t)1 << 32; bytes *= 2) {
        const struct add_call wide = chosen(90, 60 * MIB, COMPONENT_F64, bytes / 8);
        const struct add_call narrow = chosen(90, 60 * MIB, COMPONENT_I8, bytes);
        CHECK(wide.loads == narrow.loads && wide.block == narrow.block && wide.demoted == narrow.demoted, "%zu", bytes);
    }
}

/* createpolicy does not assemble below 8.0; nothing was measured on the others. */
TEST(other_capabilities_load_plainly)
{
    static const int others[] = {75, 80, 86, 89, 100, 120, 130};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CHECK(launch_configs_shipped(others[i], 60 * MIB).source == LAUNCH_CONFIGS_INHERITED, "%d", others[i]);
        for (size_t n = 1; n <= (size_t)1 << 32; n *= 16) {
            const struct add_call call = chosen(others[i], 60 * MIB, COMPONENT_I8, n);
            CHECK(call.loads == LOADS_PLAIN && call.demoted == 0 && call.block == 256, "%d, %zu", others[i], n);
        }
    }
}

TEST(every_row_of_a_table_can_be_launched_and_comes_in_order)
{
    static const struct {
        int capability;
        size_t l2;
    } devices[] = {{75, 4 * MIB}, {90, 50 * MIB}, {90, 60 * MIB}};
    for (int i = 0; i < 3; i++) {
        const struct launch_configs launch_configs = launch_configs_shipped(devices[i].capability, devices[i].l2);
        CHECK(launch_configs.count > 0 && launch_configs.row[0].min_bytes == 0);
        for (int row = 0; row < launch_configs.count; row++) {
            CHECK(launch_configs.row[row].block % 32 == 0 && launch_configs.row[row].block <= 1024);
            CHECK(row == 0 || launch_configs.row[row - 1].min_bytes < launch_configs.row[row].min_bytes);
            CHECK((launch_configs.row[row].demoted != 0) == (launch_configs.row[row].loads == LOADS_EVICT_LAST),
                  "a config that keeps lines also demotes some");
        }
    }
}
