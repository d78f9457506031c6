/* What a route is chosen by: the formula's seconds, and whether operands overlap in part. Which calls take which route
 * and stream, tests/add/test_routes.py and tests/device say. */
#include "base/overlap.h"
#include "choose/plan.h"
#include "tests.h"

static float x[64];

static bool
is_near(double seconds, double expected)
{
    return seconds > 0.999 * expected && seconds < 1.001 * expected;
}

/* The arrays are 1e8 float32, whose measured times are beside the constants in choose/plan.c. */
TEST(the_formula_predicts_each_route)
{
    static const struct {
        int threads;
        double link, host, transfer, hybrid; /* in milliseconds; the link in GB/s */
        bool ahead;
    } cases[] = {
        {1, 63, 100, 14.5455, 12.6984, true},     {4, 63, 25, 14.5455, 9.1954, true},
        {12, 63, 8.3333, 14.5455, 5.2980, true},  {13, 63, 7.7419, 14.5455, 5.0526, true},
        {256, 63, 7.7419, 14.5455, 5.0526, true}, {4, 0, 25, 29.0909, 13.4454, true}, /* the link is not known */
        {16, 3.7, 7.7419, 247.666, 7.5072, true}, {16, 3.6, 7.7419, 254.545, 7.5134, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double seconds[ROUTE_DEVICE];
        CHECK(routes_predict(400000000, cases[i].threads, 1e9 * cases[i].link, seconds) == cases[i].ahead, "%zu", i);
        CHECK(is_near(1e3 * seconds[ROUTE_HOST], cases[i].host), "%zu: %g", i, seconds[ROUTE_HOST]);
        CHECK(is_near(1e3 * seconds[ROUTE_TRANSFER], cases[i].transfer), "%zu: %g", i, seconds[ROUTE_TRANSFER]);
        CHECK(is_near(1e3 * seconds[ROUTE_HYBRID], cases[i].hybrid), "%zu: %g", i, seconds[ROUTE_HYBRID]);
    }
}

TEST(overlap_is_partial_between_none_and_all)
{
    CHECK(!overlaps_in_part(x, x, 16));
    CHECK(overlaps_in_part(x, x + 1, 16) && overlaps_in_part(x + 1, x, 16));
    CHECK(overlaps_in_part(x, x + 3, 16) && overlaps_in_part(x + 3, x, 16));
    CHECK(!overlaps_in_part(x, x + 4, 16) && !overlaps_in_part(x + 4, x, 16));
    CHECK(!overlaps_in_part(x, x + 1, 0));
}
