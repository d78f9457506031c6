/* batch.h's half of the host and overlap.h: every component, size and alignment, by any number of threads; which
 * intervals meet. */
#include <math.h>
#include <stdlib.h>

#include "base/fpflags.h"
#include "base/overlap.h"
#include "check.h"
#include "gpu/batch.h"
#include "host/batch.h"
#include "sums.h"

enum { ADDS = 200, MOST = 20000, ROOM = 64, SALT_A = 1, SALT_B = 2 };

static size_t
size_of(int i)
{
    static const size_t sizes[] = {0, 1, 3, 15, 16, 17, 255, 1000, MOST};
    return sizes[(size_t)i * 7 % (sizeof sizes / sizeof *sizes)];
}

/* Additions of every component and size, each operand at an offset of its own; in place where i % 5 is 0. */
static void
open_adds(struct batch_add *adds, char **memory)
{
    for (int i = 0; i < ADDS; i++) {
        const enum component component = (enum component)(i % COMPONENT_COUNT);
        const size_t n = size_of(i), bytes = n * component_size[component];
        char *operands[3];
        for (int k = 0; k < 3; k++) {
            memory[3 * i + k] = calloc(1, bytes + ROOM);
            operands[k] = memory[3 * i + k] + (size_t)(i + k) % 4 * component_size[component];
        }
        sums_fill(component, operands[0], n, SALT_A + (unsigned)i);
        sums_fill(component, operands[1], n, SALT_B + (unsigned)i);
        adds[i] = (struct batch_add){
            .a = operands[0], .b = operands[1], .c = i % 5 ? operands[2] : operands[0], .n = n, .component = component};
    }
}

static void
check_sums(const struct batch_add *adds)
{
    for (int i = 0; i < ADDS; i++) {
        const size_t bytes = adds[i].n * component_size[adds[i].component];
        char *expected = malloc(bytes + 1);
        sums_expect(adds[i].component, expected, adds[i].n, SALT_A + (unsigned)i, SALT_B + (unsigned)i);
        CHECK(memcmp(expected, adds[i].c, bytes) == 0, "addition %d", i);
        free(expected);
    }
}

static void
adds_every_component_size_and_alignment(void)
{
    struct status status;
    const struct host_simd *simd = host_simd_chosen(&status);
    const int threads[] = {1, 2, 3, 8};
    const size_t blocks[] = {1, 6, 1024}; /* of 16 bytes */
    for (int t = 0; t < 4; t++)
        for (int b = 0; b < 3; b++)
            for (int streaming = 0; streaming < 2; streaming++) {
                struct batch_add adds[ADDS];
                char *memory[3 * ADDS];
                unsigned flags;
                open_adds(adds, memory);
                const struct host_schedule schedule = {
                    .threads = threads[t], .streaming = streaming, .block = blocks[b]};
                CHECK(host_add_batch(simd, &schedule, adds, ADDS, &flags, &status) == 0);
                CHECK(flags == 0);
                check_sums(adds);
                for (int i = 0; i < 3 * ADDS; i++)
                    free(memory[i]);
            }
}

static void
flags_of_all_additions_are_in_one_word(void)
{
    struct status status;
    const struct host_simd *simd = host_simd_chosen(&status);
    float big = 3e38f, sum[3], infinity = INFINITY, minus = -infinity, one = 1;
    const struct batch_add adds[] = {{&one, &one, &sum[0], 1, COMPONENT_F32},
                                     {&big, &big, &sum[1], 1, COMPONENT_F32},
                                     {&infinity, &minus, &sum[2], 1, COMPONENT_F32}};
    const struct host_schedule schedule = host_add_batch_schedule(sizeof sum);
    unsigned flags;
    CHECK(host_add_batch(simd, &schedule, adds, 1, &flags, &status) == 0 && flags == 0);
    CHECK(host_add_batch(simd, &schedule, adds, 2, &flags, &status) == 0 && flags == FP_OVERFLOW);
    CHECK(host_add_batch(simd, &schedule, adds, 3, &flags, &status) == 0 && flags == (FP_OVERFLOW | FP_INVALID));
    CHECK(host_add_batch(simd, &schedule, adds, 0, &flags, &status) == 0 && flags == 0);
}

static bool
meet(const struct interval *p, const struct interval *q)
{
    return p->group != q->group && (p->written || q->written) && p->begin < q->end && q->begin < p->end;
}

static void
finds_an_overlap_exactly_where_there_is_one(void)
{
    enum { TRIES = 20000, INTERVALS = 12 };
    unsigned state = 1;
    int found_some = 0;
    for (int try = 0; try < TRIES; try++) {
        struct interval intervals[INTERVALS], scratch[INTERVALS], given[INTERVALS];
        bool expected = false;
        for (int i = 0; i < INTERVALS; i++) {
            state = state * 1664525u + 1013904223u;
            const uintptr_t far = (state >> 28) % 2 * ((uintptr_t)1 << (state >> 29) % 2 * 63);
            const uintptr_t begin = far + (state >> 8) % 300, length = 1 + (state >> 20) % 12;
            given[i] = intervals[i] = (struct interval){begin, begin + length, (size_t)(i / 3), i % 3 == 2};
            for (int j = 0; j < i; j++)
                expected |= meet(&given[i], &given[j]);
        }
        size_t groups[2];
        const bool found = overlap_find(intervals, scratch, INTERVALS, groups);
        CHECK(found == expected, "try %d", try);
        found_some += found;
        bool named = !found;
        for (int i = 0; i < INTERVALS; i++)
            for (int j = 0; j < INTERVALS; j++)
                named |= given[i].group == groups[0] && given[j].group == groups[1] && given[i].written &&
                         meet(&given[i], &given[j]);
        CHECK(named, "try %d", try);
    }
    CHECK(found_some > TRIES / 10 && found_some < TRIES * 9 / 10, "%d", found_some);
    CHECK(!overlap_find(NULL, NULL, 0, NULL));
}

int
main(void)
{
    RUN(adds_every_component_size_and_alignment);
    RUN(flags_of_all_additions_are_in_one_word);
    RUN(finds_an_overlap_exactly_where_there_is_one);
    return check_report();
}
