/* Which calls of a loop of numpy.add vecadd adds, and how. */
#include <stdint.h>

#include "check.h"
#include "choose/loop.h"
#include "host/thresholds.h"

/* Plans n float64 and one element, into another array. The arrays' addresses stand for memory that is not read. */
static struct plan
plan_with_one(size_t n)
{
    static const double one = 1;
    const struct loop_call call = {.a = (const char *)(uintptr_t)(1ull << 40),
                                   .b = (const char *)&one,
                                   .out = (char *)(uintptr_t)(2ull << 40),
                                   .n = n,
                                   .step = {sizeof one, 0, sizeof one},
                                   .dtype = DTYPE_FLOAT64};
    const struct loop_bounds bounds = loop_bounds_usual();
    struct plan plan = {.n = 0};
    struct addition addition;
    plan_loop(&plan, &addition, &call, &bounds);
    CHECK(plan.n == n, "%zu elements are planned, not %zu", plan.n, n);
    return plan;
}

static void
one_element_is_added_with_streaming_stores_where_the_sum_alone_exceeds_the_caches(void)
{
    const size_t caches = 3 * host_thresholds()->stream_alone;
    const size_t share = caches / sizeof(double);
    CHECK(!plan_with_one(share * 3 / 4).schedule.streaming_alone);
    CHECK(plan_with_one(share + 8).schedule.streaming_alone);
}

int
main(void)
{
    RUN(one_element_is_added_with_streaming_stores_where_the_sum_alone_exceeds_the_caches);
    return check_report();
}
