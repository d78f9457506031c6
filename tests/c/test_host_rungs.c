/* The host rungs and the host's limit: each adds exactly, by name, at any length. */
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "lab/base/probes.h"
#include "lab/base/rung.h"
#include "sums.h"

static void
every_host_rung_adds_every_component(void)
{
    enum { N = 100003 };
    static uint64_t a[N], b[N], c[N], expected[N];
    static const char *const names[] = {"one_thread", "threads", "threads_stream"};
    setenv("VECADD_NUM_THREADS", "3", 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct rung *rung = rung_named(names[i]);
        CHECK(rung != NULL && rung->kind == RUNG_HOST, "%s", names[i]);
        for (enum component component = 0; rung && component < COMPONENT_COUNT; component++) {
            struct status status;
            const struct rung_call call = {.component = component, .a = a, .b = b, .c = c, .n = N};
            sums_fill(component, a, N, 1);
            sums_fill(component, b, N, 2);
            sums_expect(component, expected, N, 1, 2);
            memset(c, 0xa5, sizeof c);
            CHECK(rung_takes_component(rung, component));
            CHECK(rung->run(rung, &call, &status) == 0);
            CHECK(memcmp(c, expected, N * component_size[component]) == 0, "%s component %d", names[i], component);
        }
    }
}

static void
the_host_rungs_come_first_and_in_order(void)
{
    CHECK(strcmp(rung_at(0)->name, "one_thread") == 0);
    CHECK(strcmp(rung_at(1)->name, "threads") == 0);
    CHECK(strcmp(rung_at(2)->name, "threads_stream") == 0);
    CHECK(rung_at(1000) == NULL);
}

static void
every_rung_is_found_by_its_name(void)
{
    for (size_t i = 0; rung_at(i); i++)
        CHECK(rung_named(rung_at(i)->name) == rung_at(i), "%s", rung_at(i)->name);
    CHECK(rung_named("no such rung") == NULL);
}

static void
the_host_limit_is_found_for_any_length_and_thread_count(void)
{
    static const size_t lengths[] = {0, 1, 15, 16, 1000, 70000, 300000};
    static uint32_t a[300001], b[300001], c[300001];
    for (int threads = 0; threads <= 5; threads++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            struct status status;
            struct limits_host *probe = limits_host_open(a + 1, b, c + 1, lengths[i], threads, &status);
            CHECK(probe != NULL);
            for (int round = 0; probe && round < 3; round++) {
                const double seconds = limits_host_round(probe);
                CHECK(seconds > 0 && seconds < 10, "%g s", seconds);
            }
            limits_host_close(probe);
        }
}

static void
the_host_limit_adds_every_word_and_no_other(void)
{
    static uint32_t a[70001], b[70001], c[70002];
    struct status status;
    for (size_t i = 0; i < 70001; i++) {
        a[i] = (uint32_t)i * 2654435761u;
        b[i] = ~(uint32_t)i;
    }
    struct limits_host *probe = limits_host_open(a, b, c + 1, 70000, 3, &status);
    limits_host_round(probe);
    limits_host_close(probe);
    CHECK(c[0] == 0 && c[70001] == 0);
    for (size_t i = 0; i < 70000; i++)
        CHECK(c[i + 1] == a[i] + b[i], "word %zu", i);
}

int
main(void)
{
    RUN(every_host_rung_adds_every_component);
    RUN(the_host_rungs_come_first_and_in_order);
    RUN(every_rung_is_found_by_its_name);
    RUN(the_host_limit_is_found_for_any_length_and_thread_count);
    RUN(the_host_limit_adds_every_word_and_no_other);
    return check_report();
}
