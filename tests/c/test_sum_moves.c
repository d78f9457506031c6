/* A sum moves where the last one of about as many bytes was elsewhere. */
#include <stdbool.h>
#include <stdint.h>

#include "check.h"
#include "host/sum_moves.h"

static const size_t BYTES = 1 << 20;

static const char memory[8];

static void
a_sum_moves_unless_the_last_one_of_its_size_was_there(void)
{
    CHECK(sum_moves(BYTES, memory), "the first one");
    CHECK(!sum_moves(BYTES, memory));
    CHECK(!sum_moves(BYTES + BYTES / 2, memory), "about as many bytes");
    CHECK(sum_moves(BYTES, memory + 1));
    CHECK(sum_moves(BYTES, memory) && !sum_moves(BYTES, memory));
}

static void
sums_of_other_sizes_do_not_count(void)
{
    static const size_t others[] = {0, 1, BYTES / 2, 2 * BYTES, SIZE_MAX};
    sum_moves(BYTES, memory);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        sum_moves(others[i], memory + 2);
        CHECK(!sum_moves(BYTES, memory), "%zu", others[i]);
    }
}

int
main(void)
{
    RUN(a_sum_moves_unless_the_last_one_of_its_size_was_there);
    RUN(sums_of_other_sizes_do_not_count);
    return check_report();
}
