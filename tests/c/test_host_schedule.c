/* How many threads a host addition has, which stores and which blocks. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host/add.h"
#include "tests.h"

static void
with_threads(const char *threads)
{
    setenv("VECADD_NUM_THREADS", threads, 1);
    unsetenv("VECADD_WAKE_BYTES");
}

TEST(small_arrays_stay_on_one_thread_with_ordinary_stores)
{
    with_threads("16");
    for (enum component component = 0; component < COMPONENT_COUNT; component++) {
        const struct host_schedule none = host_schedule_for(component, 0, false);
        const struct host_schedule some = host_schedule_for(component, 4096, false);
        CHECK(none.threads == 1 && !none.streaming);
        CHECK(some.threads == 1 && !some.streaming);
    }
}

TEST(large_arrays_get_all_threads_and_streaming_stores_unless_in_place)
{
    with_threads("16");
    const struct host_schedule apart = host_schedule_for(COMPONENT_F32, (size_t)1 << 28, false);
    const struct host_schedule in_place = host_schedule_for(COMPONENT_F32, (size_t)1 << 28, true);
    CHECK(apart.threads == 16 && apart.wakes && apart.streaming);
    CHECK(in_place.threads == 16 && in_place.wakes && !in_place.streaming);
}

TEST(what_fits_the_caches_has_ordinary_stores)
{
    with_threads("1");
    for (size_t n = 1; 3 * n * sizeof(float) < (size_t)16 << 20; n = n * 5 / 4 + 1)
        CHECK(!host_schedule_for(COMPONENT_F32, n, false).streaming, "%zu", n);
}

static struct host_schedule
schedule_moving(size_t n, size_t moved, bool short_rows)
{
    return host_schedule(
        &(struct host_request){.component = COMPONENT_I8, .n = n, .moved = moved, .unit = 1, .short_rows = short_rows});
}

TEST(what_is_repeated_needs_no_room_in_a_cache)
{
    with_threads("1");
    const size_t n = (size_t)6 << 20;
    CHECK(schedule_moving(n, 3 * n, false).streaming);
    CHECK(!schedule_moving(n, 2 * n + 1, false).streaming);
    CHECK(!schedule_moving(n, 3 * n, true).streaming, "short rows");
}

/* The last size with ordinary stores, for one thread and for several. */
TEST(streaming_begins_where_three_arrays_exceed_the_threads_caches)
{
    static const char *const threads[] = {"1", "2", "16"};
    for (int i = 0; i < 3; i++) {
        const pid_t child = fork(); /* thresholds are determined once a process */
        if (child == 0) {
            with_threads(threads[i]);
            const struct host_thresholds *from = host_thresholds();
            const size_t least = i ? from->stream_together : from->stream_alone;
            _exit(host_schedule_for(COMPONENT_I8, least - 1, false).streaming ||
                  !host_schedule_for(COMPONENT_I8, least, false).streaming || from->stream_alone > least);
        }
        int how = -1;
        CHECK(waitpid(child, &how, 0) == child && how == 0, "%s threads", threads[i]);
    }
}

TEST(sums_between_have_the_threads_that_are_awake)
{
    with_threads("16");
    const struct host_schedule smallest = host_schedule_for(COMPONENT_F32, 1 << 15, false);
    const struct host_schedule largest = host_schedule_for(COMPONENT_F32, (1 << 17) - 1, false);
    CHECK(smallest.threads == 4 && !smallest.wakes, "%d", smallest.threads);
    CHECK(largest.threads == 15 && !largest.wakes, "%d", largest.threads);
    CHECK(host_schedule_for(COMPONENT_F32, (1 << 15) - 1, false).threads == 1);
    CHECK(host_schedule_for(COMPONENT_F32, 1 << 17, false).wakes);
}

TEST(four_threads_are_woken_for_a_quarter_of_what_three_are)
{
    static const char *const threads[] = {"3", "4"};
    static const size_t wake[] = {2 << 20, 512 << 10};
    for (int i = 0; i < 2; i++) {
        const pid_t child = fork();
        if (child == 0) {
            with_threads(threads[i]);
            _exit(host_schedule_for(COMPONENT_I8, wake[i] - 1, false).wakes ||
                  !host_schedule_for(COMPONENT_I8, wake[i], false).wakes);
        }
        int how = -1;
        CHECK(waitpid(child, &how, 0) == child && how == 0, "%s threads", threads[i]);
    }
}

TEST(fewer_than_four_threads_stream_a_sum_that_moves)
{
    with_threads("3");
    const struct host_thresholds *from = host_thresholds();
    CHECK(from->moved_alone < from->moved);
    CHECK(host_schedule_for(COMPONENT_I8, from->moved_alone - 1, false).moved == NOT_STREAMED);
    CHECK(host_schedule_for(COMPONENT_I8, from->moved_alone, false).moved == STREAMED_ALONE);
    CHECK(host_schedule_for(COMPONENT_I8, from->moved - 1, false).moved == STREAMED_ALONE);
    CHECK(host_schedule_for(COMPONENT_I8, from->moved, false).moved == STREAMED);
    CHECK(host_schedule_for(COMPONENT_I8, from->moved, true).moved == NOT_STREAMED, "in place");
    CHECK(schedule_moving(from->moved, 3 * from->moved, true).moved == NOT_STREAMED, "short rows");
}

TEST(four_threads_stream_by_size_alone)
{
    with_threads("4");
    CHECK(host_schedule_for(COMPONENT_I8, (size_t)1 << 40, false).moved == NOT_STREAMED);
}

static int streamed;

static void
store_plainly(const void *a, const void *b, void *c, size_t n)
{
    (void)a, (void)b, (void)c, (void)n;
}

static void
store_streaming(const void *a, const void *b, void *c, size_t n)
{
    (void)a, (void)b, (void)c, (void)n;
    streamed++;
}

TEST(outputs_that_up_to_four_sums_take_turns_with_are_in_a_cache_and_five_are_not)
{
    static char out[5][64];
    const struct host_simd simd = {.add[COMPONENT_I8] = store_plainly, .stream[COMPONENT_I8] = store_streaming};
    const struct host_schedule schedule = {.threads = 1, .moved = STREAMED_ALONE, .block = 64};
    for (int outputs = 1; outputs <= 5; outputs++) {
        for (int call = 0; call < 4 * outputs; call++) {
            if (call == 2 * outputs)
                streamed = 0; /* all of them have been written */
            const int at = call % outputs;
            host_add(&simd, &schedule, COMPONENT_I8, out[at], out[at], out[at], 64);
        }
        CHECK(streamed == (outputs == 5 ? 10 : 0), "%d outputs: %d streamed", outputs, streamed);
    }
}

TEST(vecadd_wake_bytes_says_from_which_size_on_workers_are_woken)
{
    with_threads("16");
    setenv("VECADD_WAKE_BYTES", "40000", 1);
    CHECK(host_invalid_wake_variable() == NULL);
    CHECK(!host_schedule_for(COMPONENT_I8, 39999, false).wakes && host_schedule_for(COMPONENT_I8, 40000, false).wakes);
    CHECK(host_schedule_for(COMPONENT_I8, 39999, false).threads == 1);
    CHECK(host_schedule_for(COMPONENT_I8, 40000, false).threads == 2);
}

TEST(another_text_in_vecadd_wake_bytes_is_ignored)
{
    static const char *const texts[] = {"-1", "1e6", "64K", " 5", "99999999999999999999"};
    with_threads("2");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        setenv("VECADD_WAKE_BYTES", texts[i], 1);
        CHECK(host_invalid_wake_variable() && strcmp(host_invalid_wake_variable(), texts[i]) == 0, "%s", texts[i]);
    }
    CHECK(host_thresholds()->wake == 2 << 20);
    setenv("VECADD_WAKE_BYTES", "", 1);
    CHECK(host_invalid_wake_variable() == NULL);
}

TEST(sums_that_leave_the_first_cache_have_the_shorter_vectors)
{
    with_threads("1");
    unsetenv("VECADD_SIMD");
    const size_t from = host_thresholds()->narrow; /* where the longest vectors cost a step of the clock */
    CHECK(from == 64 << 10 || from == SIZE_MAX);
    CHECK(!host_schedule_for(COMPONENT_I8, from - 1, false).narrow &&
          !host_schedule_forced(COMPONENT_I8, from - 1, 1, false).narrow);
    CHECK(host_schedule_for(COMPONENT_I8, from, false).narrow &&
          host_schedule_forced(COMPONENT_I8, from, 1, false).narrow);
}

TEST(a_level_that_is_named_is_that_of_every_size)
{
    with_threads("1");
    setenv("VECADD_SIMD", host_simd_levels[0]->name, 1);
    CHECK(!host_schedule_for(COMPONENT_I8, (size_t)1 << 40, false).narrow);
}

TEST(every_thread_has_a_block)
{
    with_threads("200");
    for (size_t n = 1 << 13; n <= 1 << 24; n *= 2) {
        const struct host_schedule schedule = host_schedule_for(COMPONENT_F32, n, false);
        CHECK((size_t)schedule.threads * schedule.block <= n || schedule.threads == 1, "%d at %zu", schedule.threads,
              n);
    }
    CHECK(host_schedule_for(COMPONENT_F32, 1 << 18, false).threads == (1 << 20) / (32 << 10));
}

TEST(blocks_are_whole_cache_lines_and_divide_addresses)
{
    for (enum component component = 0; component < COMPONENT_COUNT; component++)
        for (size_t n = 1; n < (size_t)1 << 32; n = n * 3 + 1) {
            const size_t bytes = host_schedule_forced(component, n, 5, false).block * component_size[component];
            CHECK(bytes >= 64 && (bytes & (bytes - 1)) == 0, "%zu", bytes);
        }
}

TEST(caches_grow_with_their_level)
{
    CHECK(host_cache_bytes(0) == 0 && host_cache_bytes(4) == 0);
    CHECK(host_cache_bytes(2) == 0 || host_cache_bytes(2) > host_cache_bytes(1));
}
