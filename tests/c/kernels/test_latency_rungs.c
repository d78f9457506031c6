/* The latency rungs, run directly: every component, pieces of awkward lengths and any placement, one by one and in a
 * chain. No component is left out, none added twice, and no byte touched beside the operands. */
#include <string.h>

#include "double.h"
#include "lab/base/rung.h"
#include "lab/ladder/latency.h"
#include "operands.h"
#include "sums.h"
#include "tests.h"

extern const struct rung *const latency_rungs[];

enum { LONGEST = 5000, ROOM = LONGEST * 8 + 4 * MARGIN };

static const size_t lengths[] = {0, 1, 3, 256, 257, 1025, LONGEST};
static const int numbers[] = {1, 7, 100};

/* Misaligned by `offset` components, so that pieces begin anywhere too. */
static void
check_rung(const struct rung *rung, struct memory *m, enum component component, size_t n, int adds, int chain,
           size_t offset)
{
    const size_t width = component_size[component], bytes = n * width;
    unsigned char *a = m->a + MARGIN + offset * width, *b = m->b + MARGIN, *c = m->c + MARGIN + 2 * offset * width;
    struct latency_stages stages = {0};
    struct status status;
    const struct rung_call call = {
        .component = component, .a = a, .b = b, .c = c, .n = n, .params = {adds, chain}, .stages = &stages};
    memset(c - MARGIN, CANARY, MARGIN + bytes + MARGIN);
    sums_fill(component, a, n, 1);
    sums_fill(component, b, n, 2);
    for (size_t i = 0; i < n; i++)
        sums_put(component, m->expected, i,
                 sums_value(component, i, 1) + (chain ? adds : 1) * sums_value(component, i, 2));

    fence(a, bytes);
    fence(b, bytes);
    CHECK(rung->run(rung, &call, &status) == 0, "%s: %s", rung->name, status.text);
    unfence(a, bytes);
    unfence(b, bytes);
    CHECK(memcmp(c, m->expected, bytes) == 0, "%s, component %d, n %zu, adds %d, chain %d", rung->name, component, n,
          adds, chain);
    CHECK(all_canaries(c - MARGIN, MARGIN) && all_canaries(c + bytes, MARGIN), "%s, component %d, n %zu, adds %d",
          rung->name, component, n, adds);
    CHECK(0 < stages.issue && stages.issue <= stages.total, "%s", rung->name);
}

TEST(every_rung_adds_every_component_in_pieces)
{
    struct memory m = memory_open(ROOM);
    for (const struct rung *const *rung = latency_rungs; *rung; rung++)
        for (enum component component = 0; component < COMPONENT_COUNT; component++)
            for (size_t i = 0; rung_takes_component(*rung, component) && i < sizeof lengths / sizeof *lengths; i++)
                for (size_t j = 0; j < sizeof numbers / sizeof *numbers; j++)
                    check_rung(*rung, &m, component, lengths[i], numbers[j], 0, j % 3);
    CHECK(double_faults() == 0);
    memory_close(&m);
}

/* Two links: every component represents the sums of three values exactly. */
TEST(every_rung_but_one_adds_every_component_in_a_chain)
{
    struct memory m = memory_open(ROOM);
    for (const struct rung *const *rung = latency_rungs; *rung; rung++)
        for (enum component component = 0; component < COMPONENT_COUNT && strcmp((*rung)->name, "batched") != 0;
             component++)
            for (size_t i = 0; rung_takes_component(*rung, component) && i < sizeof lengths / sizeof *lengths; i++)
                check_rung(*rung, &m, component, lengths[i], 2, 1, i % 3);
    CHECK(double_faults() == 0);
    memory_close(&m);
}

/* Whatever order the streams leave open. */
TEST(a_chain_is_in_order_in_every_order_of_work)
{
    struct memory m = memory_open(ROOM);
    for (unsigned seed = 0; seed < 10; seed++) {
        double_reset(seed);
        for (const struct rung *const *rung = latency_rungs; *rung; rung++)
            if (strcmp((*rung)->name, "batched") != 0)
                check_rung(*rung, &m, COMPONENT_I32, 1000, 50, 1, 0);
    }
    memory_close(&m);
}
