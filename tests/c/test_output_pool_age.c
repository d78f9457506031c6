/* The memory of sums goes back when no sum has used it for some seconds. */
#include "check.h"
#include "double.h"
#include "host/output_pool.h"

#define MIB    ((size_t)1 << 20)
#define SECOND 1000000000LL

_Static_assert(OUTPUT_POOL_SECONDS == 5, "the seconds below");

/* The clock goes on at each look, of which a block that is given back takes one. */
static void
a_block_that_was_not_used_for_five_seconds_goes_back(void)
{
    void *blocks[3];
    for (size_t i = 0; i < 3; i++)
        blocks[i] = output_pool_take(MIB + i * MIB);
    double_clock(3 * SECOND);
    output_pool_give(blocks[0]);
    output_pool_give(blocks[1]);
    CHECK(output_pool_counts().kept_blocks == 2);
    output_pool_give(blocks[2]);
    CHECK(output_pool_counts().kept_blocks == 2, "the first, given six seconds ago, is gone");
    CHECK(output_pool_take(2 * MIB) == blocks[1], "and the second is not");
    double_clock(6 * SECOND);
    output_pool_give(blocks[1]);
    CHECK(output_pool_counts().kept_blocks == 1, "but now the third is");
    output_pool_empty();
}

static void
a_thread_that_asks_again_and_again_is_told_when_nothing_is_left(void)
{
    void *kept = output_pool_take(MIB), *dropped = output_pool_take(2 * MIB);
    double_clock(SECOND);
    output_pool_give(dropped);
    CHECK(output_pool_age() && output_pool_counts().kept_blocks == 1);
    double_clock(10 * SECOND);
    CHECK(output_pool_age(), "a block is still in use");
    CHECK(output_pool_counts().kept_blocks == 0 && output_pool_counts().used_blocks == 1);
    output_pool_give(kept);
    CHECK(!output_pool_age(), "no block is left");
    CHECK(output_pool_counts().kept_bytes == 0);
}

int
main(void)
{
    setenv("VECADD_POOL_BYTES", "1073741824", 1); /* more than any test keeps, on a small machine too */
    setenv("VECADD_NUM_THREADS", "1", 1); /* a second one clears pages, and looks at the clock until it sleeps */
    RUN(a_block_that_was_not_used_for_five_seconds_goes_back);
    RUN(a_thread_that_asks_again_and_again_is_told_when_nothing_is_left);
    return check_report();
}
