/* The host's limit is an addition: of any length, exact, and of nothing else. */
#include <stdint.h>

#include "host/limit.h"
#include "tests.h"

TEST(the_host_limit_is_found_for_any_length_and_thread_count)
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

TEST(the_host_limit_adds_every_word_and_no_other)
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
