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

static struct host_schedule
schedule_of(struct host_request request)
{
    struct host_schedule schedule;
    struct status status;
    request.unit = 1;
    CHECK(host_schedule(&schedule, &request, &status) == 0, "%s", status.text);
    return schedule;
}

/* Of contiguous arrays, the sum being where an earlier one was. */
static struct host_schedule
by_size(enum component component, size_t n, bool in_place)
{
    return schedule_of((struct host_request){
        .component = component, .n = n, .moved = 3 * n * component_size[component], .in_place = in_place});
}

/* Of n bytes, into memory where no sum has been. */
static struct host_schedule
elsewhere(struct host_request request)
{
    static char *c;
    request.component = COMPONENT_I8;
    request.moved = 3 * request.n;
    request.c = ++c;
    return schedule_of(request);
}

TEST(small_arrays_stay_on_one_thread_with_ordinary_stores)
{
    with_threads("16");
    for (enum component component = 0; component < COMPONENT_COUNT; component++) {
        const struct host_schedule none = by_size(component, 0, false);
        const struct host_schedule some = by_size(component, 4096, false);
        CHECK(none.threads == 1 && !none.streaming);
        CHECK(some.threads == 1 && !some.streaming);
    }
}

TEST(large_arrays_get_all_threads_and_streaming_stores_unless_in_place)
{
    with_threads("16");
    const struct host_schedule apart = by_size(COMPONENT_F32, (size_t)1 << 28, false);
    const struct host_schedule in_place = by_size(COMPONENT_F32, (size_t)1 << 28, true);
    CHECK(apart.threads == 16 && apart.wakes && apart.streaming);
    CHECK(in_place.threads == 16 && in_place.wakes && !in_place.streaming);
}

TEST(what_fits_the_caches_has_ordinary_stores)
{
    with_threads("1");
    for (size_t n = 1; 3 * n * sizeof(float) < (size_t)16 << 20; n = n * 5 / 4 + 1)
        CHECK(!by_size(COMPONENT_F32, n, false).streaming, "%zu", n);
}

static struct host_schedule
schedule_moving(size_t n, size_t moved, bool short_rows)
{
    return schedule_of(
        (struct host_request){.component = COMPONENT_I8, .n = n, .moved = moved, .short_rows = short_rows});
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
            _exit(by_size(COMPONENT_I8, least - 1, false).streaming || !by_size(COMPONENT_I8, least, false).streaming ||
                  from->stream_alone > least);
        }
        int how = -1;
        CHECK(waitpid(child, &how, 0) == child && how == 0, "%s threads", threads[i]);
    }
}

TEST(sums_between_have_the_threads_that_are_awake)
{
    with_threads("16");
    const struct host_schedule smallest = by_size(COMPONENT_F32, 1 << 15, false);
    const struct host_schedule largest = by_size(COMPONENT_F32, (1 << 17) - 1, false);
    CHECK(smallest.threads == 4 && !smallest.wakes, "%d", smallest.threads);
    CHECK(largest.threads == 15 && !largest.wakes, "%d", largest.threads);
    CHECK(by_size(COMPONENT_F32, (1 << 15) - 1, false).threads == 1);
    CHECK(by_size(COMPONENT_F32, 1 << 17, false).wakes);
}

TEST(four_threads_share_half_of_what_three_do_and_are_woken_for_a_quarter)
{
    static const char *const threads[] = {"3", "4"};
    static const size_t wake[] = {2 << 20, 512 << 10}, awake[] = {256 << 10, 128 << 10};
    for (int i = 0; i < 2; i++) {
        const pid_t child = fork();
        if (child == 0) {
            with_threads(threads[i]);
            _exit(by_size(COMPONENT_I8, wake[i] - 1, false).wakes || !by_size(COMPONENT_I8, wake[i], false).wakes ||
                  by_size(COMPONENT_I8, awake[i] - 1, false).threads > 1 ||
                  by_size(COMPONENT_I8, awake[i], false).threads == 1);
        }
        int how = -1;
        CHECK(waitpid(child, &how, 0) == child && how == 0, "%s threads", threads[i]);
    }
}

TEST(fewer_than_four_threads_stream_a_sum_that_moves)
{
    with_threads("3");
    const struct host_thresholds *from = host_thresholds();
    static const struct fallback_loop below;
    CHECK(from->moved_alone < from->moved);
    const struct host_schedule shared = elsewhere((struct host_request){.n = from->moved - 1});
    CHECK(shared.streams_alone && !shared.streaming && shared.threads > 1);
    CHECK(elsewhere((struct host_request){.n = from->moved}).streaming);
    CHECK(elsewhere((struct host_request){.n = from->moved_alone, .threads = 1}).streaming);
    CHECK(!elsewhere((struct host_request){.n = from->moved_alone - 1, .threads = 1}).streaming);
    CHECK(!elsewhere((struct host_request){.n = from->moved, .in_place = true}).streaming);
    CHECK(!elsewhere((struct host_request){.n = from->moved, .short_rows = true}).streaming);
    CHECK(!by_size(COMPONENT_I8, from->moved, false).streaming, "it is not known where");
    const struct host_schedule over = elsewhere((struct host_request){.n = from->moved - 1, .below = &below});
    CHECK(over.fallback == &below && !over.streams_alone);
}

TEST(four_threads_stream_by_size_alone)
{
    with_threads("4");
    const size_t least = host_thresholds()->stream_together;
    CHECK(!elsewhere((struct host_request){.n = least - 1}).streaming);
    CHECK(elsewhere((struct host_request){.n = least}).streaming);
}

TEST(outputs_that_up_to_four_sums_take_turns_with_are_in_a_cache_and_five_are_not)
{
    static char out[5];
    with_threads("3");
    const size_t n = host_thresholds()->moved;
    for (int outputs = 1; outputs <= 5; outputs++)
        for (int call = 0; call < 4 * outputs; call++) {
            const struct host_schedule schedule = schedule_of(
                (struct host_request){.component = COMPONENT_I8, .n = n, .moved = 3 * n, .c = &out[call % outputs]});
            if (call >= 2 * outputs) /* all of them have been written */
                CHECK(schedule.streaming == (outputs == 5), "%d outputs, call %d", outputs, call);
        }
}

TEST(what_is_given_is_not_decided_by_size)
{
    with_threads("2");
    const struct host_request small = {.component = COMPONENT_F64, .n = 1, .moved = 24, .threads = 5};
    struct host_request given = small;
    CHECK(schedule_of(given).threads == 5 && schedule_of(given).wakes && !schedule_of(given).streaming);
    given.stores = STORES_STREAMING;
    given.block = 4096;
    CHECK(schedule_of(given).streaming && schedule_of(given).block == 4096 / sizeof(double));
    given = (struct host_request){.component = COMPONENT_I8, .n = (size_t)1 << 40, .moved = (size_t)3 << 40};
    CHECK(schedule_of(given).streaming);
    given.threads = 2;
    given.stores = STORES_ORDINARY;
    CHECK(!schedule_of(given).streaming);
}

TEST(vecadd_wake_bytes_says_from_which_size_on_workers_are_woken)
{
    with_threads("16");
    setenv("VECADD_WAKE_BYTES", "40000", 1);
    CHECK(host_invalid_wake_variable() == NULL);
    CHECK(!by_size(COMPONENT_I8, 39999, false).wakes && by_size(COMPONENT_I8, 40000, false).wakes);
    CHECK(by_size(COMPONENT_I8, 39999, false).threads == 1);
    CHECK(by_size(COMPONENT_I8, 40000, false).threads == 2);
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
    CHECK(!by_size(COMPONENT_I8, from - 1, false).narrow && by_size(COMPONENT_I8, from, false).narrow);
}

TEST(a_level_that_is_named_is_that_of_every_size)
{
    with_threads("1");
    setenv("VECADD_SIMD", host_simd_levels[0]->name, 1);
    CHECK(!by_size(COMPONENT_I8, (size_t)1 << 40, false).narrow);
}

TEST(every_thread_has_a_block)
{
    with_threads("200");
    for (size_t n = 1 << 13; n <= 1 << 24; n *= 2) {
        const struct host_schedule schedule = by_size(COMPONENT_F32, n, false);
        CHECK((size_t)schedule.threads * schedule.block <= n || schedule.threads == 1, "%d at %zu", schedule.threads,
              n);
    }
    CHECK(by_size(COMPONENT_F32, 1 << 18, false).threads == (1 << 20) / (32 << 10));
}

TEST(blocks_are_whole_cache_lines_and_divide_addresses)
{
    for (enum component component = 0; component < COMPONENT_COUNT; component++)
        for (size_t n = 1; n < (size_t)1 << 32; n = n * 3 + 1) {
            const struct host_request request = {.component = component, .n = n, .threads = 5};
            const size_t bytes = schedule_of(request).block * component_size[component];
            CHECK(bytes >= 64 && (bytes & (bytes - 1)) == 0, "%zu", bytes);
        }
}

TEST(caches_grow_with_their_level)
{
    CHECK(host_cache_bytes(0) == 0 && host_cache_bytes(4) == 0);
    CHECK(host_cache_bytes(2) == 0 || host_cache_bytes(2) > host_cache_bytes(1));
}
