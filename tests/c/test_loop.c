/* Which calls of a loop of numpy.add vecadd adds, and how. */
#include <stdint.h>

#include "choose/numpy_loop.h"
#include "host/schedule.h"
#include "tests.h"

enum { MOST = 64 << 20 }; /* bytes */

/* Plans n float64, or n and one, into another array. The arrays' addresses are placeholders: nothing is read there. */
static struct plan
plan_of(struct loop_call *call, struct addition *addition, size_t n, bool with_one)
{
    static const double one = 1;
    *call = (struct loop_call){.a = (const char *)(uintptr_t)(1ull << 40),
                               .b = with_one ? (const char *)&one : (const char *)(uintptr_t)(2ull << 40),
                               .out = (char *)(uintptr_t)(3ull << 40),
                               .n = n,
                               .step = {sizeof one, with_one ? 0 : sizeof one, sizeof one},
                               .dtype = DTYPE_FLOAT64};
    struct plan plan = {.n = 0};
    plan_loop(&plan, addition, call, false);
    return plan;
}

TEST(the_loop_below_adds_what_one_thread_would_add_with_ordinary_stores)
{
    int below = 0, ours = 0;
    for (int with_one = 0; with_one < 2; with_one++)
        for (size_t bytes = loop_least(); bytes <= MOST; bytes *= 2) {
            struct loop_call call;
            struct addition addition;
            const size_t n = bytes / sizeof(double);
            const struct plan plan = plan_of(&call, &addition, n, with_one);
            CHECK(plan.n == n, "%zu elements are planned, not %zu", plan.n, n);
            const bool woken = plan.schedule.wakes;
            CHECK(plan.schedule.fallback == (plan.schedule.streaming || woken ? NULL : &call.below), "%zu bytes",
                  bytes);
            below += !plan.schedule.streaming;
            ours += plan.schedule.streaming;
        }
    CHECK(below > 0 && ours > 0);
}
