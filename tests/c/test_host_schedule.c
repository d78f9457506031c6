/* How many threads a host addition has, which stores and which blocks: as shipped, and as a tuned file says. */
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/now.h"
#include "base/tuned_file.h"
#include "check.h"
#include "host/add.h"
#include "host/cache.h"
#include "host/stores.h"
#include "host/thresholds.h"

/* What this machine has been tuned to is not the subject here. */
static void
as_shipped(const char *threads)
{
    setenv("VECADD_CACHE_DIR", "/nonexistent", 1);
    setenv("VECADD_NUM_THREADS", threads, 1);
}

static void
small_arrays_stay_on_one_thread_with_ordinary_stores(void)
{
    as_shipped("16");
    for (enum component component = 0; component < COMPONENT_COUNT; component++) {
        const struct host_schedule none = host_schedule_for(component, 0, false);
        const struct host_schedule some = host_schedule_for(component, 4096, false);
        CHECK(none.threads == 1 && !none.streaming);
        CHECK(some.threads == 1 && !some.streaming);
    }
}

static void
large_arrays_get_all_threads_and_streaming_stores_unless_in_place(void)
{
    as_shipped("16");
    const struct host_schedule apart = host_schedule_for(COMPONENT_F32, (size_t)1 << 28, false);
    const struct host_schedule in_place = host_schedule_for(COMPONENT_F32, (size_t)1 << 28, true);
    CHECK(apart.threads == 16 && apart.wakes && apart.streaming && apart.streaming_alone);
    CHECK(in_place.threads == 16 && in_place.wakes && !in_place.streaming && !in_place.streaming_alone);
}

static void
what_the_caches_hold_has_ordinary_stores(void)
{
    as_shipped("1");
    for (size_t n = 1; 3 * n * sizeof(float) < (size_t)16 << 20; n = n * 5 / 4 + 1)
        CHECK(!host_schedule_for(COMPONENT_F32, n, false).streaming, "%zu", n);
}

static void
what_is_repeated_needs_no_room_in_a_cache(void)
{
    as_shipped("1");
    const size_t n = (size_t)6 << 20;
    CHECK(host_schedule_for(COMPONENT_I8, n, false).streaming);
    CHECK(host_schedule_moving(COMPONENT_I8, n, false, 3 * n).streaming);
    CHECK(!host_schedule_moving(COMPONENT_I8, n, false, 2 * n + 1).streaming);
}

static void
count_streaming(void *context, size_t begin, size_t end, int worker)
{
    (void)context, (void)begin, (void)end, (void)worker;
}

static void
count_ordinary(void *context, size_t begin, size_t end, int worker)
{
    (void)begin, (void)end, (void)worker;
    atomic_store((atomic_bool *)context, true);
}

/* Whether a job that writes so many bytes has ordinary stores once those were quicker, and its worker is awake: a
 * caller alone keeps to its own. So it is tried 2000 times, and for so many seconds at least. */
static bool
learns_within(double seconds, struct host_schedule schedule, size_t bytes)
{
    static const struct host_bodies bodies = {count_streaming, count_ordinary, count_streaming, NULL, NULL};
    enum { CALLS = 100, TRIES = 2000 };
    atomic_bool ordinary = false;
    const double end = now_seconds() + seconds;
    for (int i = 0; i < CALLS; i++) {
        const bool streaming = stores_choose_streaming(bytes, false);
        stores_note(bytes, false, streaming, streaming ? 1000000 : 1000);
    }
    schedule.block = 1;
    for (int i = 0; (i < TRIES || now_seconds() < end) && !atomic_load(&ordinary); i++) {
        host_run(&schedule, CALLS, bytes, &bodies, &ordinary);
        sched_yield();
    }
    return atomic_load(&ordinary);
}

static bool
learns(struct host_schedule schedule, size_t bytes)
{
    return learns_within(10, schedule, bytes);
}

static bool
never_learns(struct host_schedule schedule, size_t bytes)
{
    return !learns_within(0, schedule, bytes);
}

static void
stores_of_what_the_caches_may_hold_are_learned(void)
{
    as_shipped("2");
    const size_t from = host_thresholds()->stream_together, l2 = host_thresholds()->l2;
    CHECK(never_learns(host_schedule_for(COMPONENT_I8, l2 - 1, false), l2 - 1), "the caches hold it");
    CHECK(learns(host_schedule_for(COMPONENT_I8, from, false), from));
    CHECK(learns(host_schedule_for(COMPONENT_I8, 4 * from - 1, false), 4 * from - 1));
    CHECK(never_learns(host_schedule_for(COMPONENT_I8, 4 * from, false), 4 * from), "they do not");
    CHECK(never_learns(host_schedule_for(COMPONENT_I8, from, true), from), "in place nothing streams");
    CHECK(never_learns(host_schedule_with(COMPONENT_I8, from, 2, true), from), "a rung has the stores of its name");
}

/* Which stores the last block of count_stores had. */
enum stores { NONE, STREAMING, ORDINARY };

static atomic_int stores;

static void
note_streaming(void *context, size_t begin, size_t end, int worker)
{
    (void)context, (void)begin, (void)end, (void)worker;
    atomic_store(&stores, STREAMING);
}

static void
note_ordinary(void *context, size_t begin, size_t end, int worker)
{
    (void)context, (void)begin, (void)end, (void)worker;
    atomic_store(&stores, ORDINARY);
}

/* How many of some jobs stream, once streaming stores were quicker for sums that move. */
static int
streamed(const struct host_schedule *schedule, size_t bytes, const char *const sums[2])
{
    enum { CALLS = 100 };
    for (int i = 0; i < CALLS; i++) {
        const bool streaming = stores_choose_streaming(bytes, true);
        stores_note(bytes, true, streaming, streaming ? 1000 : 1000000);
    }
    int count = 0;
    for (int i = 0; i < CALLS; i++) {
        const struct host_bodies bodies = {note_streaming, note_ordinary, note_ordinary, NULL, sums[i % 2]};
        host_run(schedule, CALLS, bytes, &bodies, NULL);
        count += atomic_load(&stores) == STREAMING;
    }
    return count;
}

static bool
is_ordinary_again(size_t bytes, bool in_place)
{
    const struct host_schedule schedule = host_schedule_for(COMPONENT_I8, bytes, in_place);
    return host_ordinary_again(&schedule, bytes);
}

static void
sums_that_move_have_a_choice_of_stores_and_others_have_none(void)
{
    as_shipped("2");
    static const char memory[2];
    const size_t bytes = host_thresholds()->stream_together - 1, least = host_thresholds()->l2;
    struct host_schedule schedule = host_schedule_for(COMPONENT_I8, bytes, false);
    schedule.block = 1;
    schedule.wakes = true; /* without `alone`, whose stores are its own */
    stores_forget();
    const int moved = streamed(&schedule, bytes, (const char *const[]){memory, memory + 1});
    CHECK(moved > 90, "%d", moved);
    const int stayed = streamed(&schedule, bytes, (const char *const[]){memory, memory});
    CHECK(stayed <= 1, "%d: all but the first, which moved", stayed);
    stores_forget();
    CHECK(is_ordinary_again(least, false));
    CHECK(!is_ordinary_again(least - 1, false), "an L2 cache holds the sum");
    CHECK(!is_ordinary_again(bytes + 1, false), "all such sums have a choice");
    CHECK(!is_ordinary_again(bytes, true), "in place nothing streams");
}

static void
arrays_between_have_the_threads_that_are_awake(void)
{
    as_shipped("16");
    const struct host_schedule smallest = host_schedule_for(COMPONENT_F32, 1 << 15, false);
    const struct host_schedule largest = host_schedule_for(COMPONENT_F32, (1 << 22) - 1, false);
    CHECK(smallest.threads == 4 && !smallest.wakes, "%d", smallest.threads);
    CHECK(largest.threads == 16 && !largest.wakes, "%d", largest.threads);
    CHECK(host_schedule_for(COMPONENT_F32, (1 << 15) - 1, false).threads == 1);
    CHECK(host_schedule_for(COMPONENT_F32, 1 << 22, false).wakes);
    CHECK(!is_ordinary_again(host_thresholds()->l2, false), "known of two threads alone");
}

static void
sums_that_leave_the_first_cache_have_the_shorter_vectors(void)
{
    as_shipped("1");
    unsetenv("VECADD_SIMD");
    const size_t from = host_thresholds()->narrow; /* where the longest vectors cost a step of the clock */
    CHECK(from == 64 << 10 || from == HOST_NEVER);
    CHECK(!host_schedule_for(COMPONENT_I8, from - 1, false).narrow &&
          !host_schedule_with(COMPONENT_I8, from - 1, 1, false).narrow);
    CHECK(host_schedule_for(COMPONENT_I8, from, false).narrow &&
          host_schedule_with(COMPONENT_I8, from, 1, false).narrow);
}

static void
a_level_that_is_named_is_that_of_every_size(void)
{
    as_shipped("1");
    setenv("VECADD_SIMD", host_simd_levels[0]->name, 1);
    CHECK(!host_schedule_for(COMPONENT_I8, (size_t)1 << 40, false).narrow);
}

static void
every_thread_has_a_block(void)
{
    as_shipped("200");
    for (size_t n = 1 << 13; n <= 1 << 24; n *= 2) {
        const struct host_schedule schedule = host_schedule_for(COMPONENT_F32, n, false);
        CHECK((size_t)schedule.threads * schedule.block <= n || schedule.threads == 1, "%d at %zu", schedule.threads,
              n);
    }
    CHECK(host_schedule_for(COMPONENT_F32, 1 << 18, false).threads == (1 << 20) / (32 << 10));
}

/* Writes a tuned file of this host with these rows into a folder of its own, and has it read. */
static void
tuned_to(const char *rows)
{
    char folder[] = "/tmp/vecadd-host-XXXXXX", key[HOST_KEY], path[256];
    setenv("VECADD_NUM_THREADS", "16", 1);
    host_key(key, sizeof key);
    if (mkdtemp(folder) == NULL || setenv("VECADD_CACHE_DIR", folder, 1) != 0 ||
        !tuned_file_path("host", key, path, sizeof path))
        abort();
    FILE *file = fopen(path, "w");
    if (file == NULL || fprintf(file, "vecadd %d %s\n%s", TUNED_VERSION, key, rows) < 0 || fclose(file) != 0)
        abort();
    host_thresholds();
    remove(path);
    remove(folder);
}

static void
thresholds_are_those_that_were_tuned(void)
{
    tuned_to("threads_awake 65536\nthreads_asleep 1000000\nstream_alone 3000000\nstream_together 1152921504606846976\n"
             "share 16384\nblock 1048576\nnarrow 3000\nthreads_streaming 5\nend 8\n");
    CHECK(host_thresholds()->tuned && host_thresholds()->stream_together == HOST_NEVER);
    CHECK(host_thresholds()->spills == 4 * HOST_NEVER);
    CHECK(!host_schedule_for(COMPONENT_I8, 65536, false).learns, "the file says when workers are woken");
    CHECK(host_schedule_for(COMPONENT_I8, 3000, false).narrow && !host_schedule_for(COMPONENT_I8, 2999, false).narrow);
    CHECK(host_schedule_for(COMPONENT_I8, 65535, false).threads == 1 &&
          host_schedule_for(COMPONENT_I8, 65536, false).threads == 4);
    CHECK(!host_schedule_for(COMPONENT_I8, 999999, false).wakes &&
          host_schedule_for(COMPONENT_I8, 1000000, false).wakes);
    const struct host_schedule largest = host_schedule_for(COMPONENT_I8, (size_t)1 << 40, false);
    CHECK(largest.block == 1 << 20 && !largest.streaming && largest.streaming_alone && largest.threads == 16);
}

static void
two_threads_need_no_share_of_that_size(void)
{
    tuned_to("threads_awake 65536\nshare 131072\nend 2\n");
    CHECK(host_schedule_for(COMPONENT_I8, 65536, false).learns, "the calls show when workers are woken");
    CHECK(host_schedule_for(COMPONENT_I8, 65536, false).threads == 2);
    CHECK(host_schedule_for(COMPONENT_I8, 1 << 19, false).threads == 4);
}

static void
threads_that_never_pay_awake_are_never_woken(void)
{
    tuned_to("threads_awake 1152921504606846976\nend 1\n");
    CHECK(host_schedule_for(COMPONENT_I8, (size_t)1 << 40, false).threads == 1);
}

static void
threads_that_stream_are_as_many_as_were_tuned(void)
{
    tuned_to("stream_together 1048576\nthreads_streaming 5\nend 2\n");
    CHECK(host_schedule_for(COMPONENT_I8, 1048576, false).threads == 5);
    CHECK(host_schedule_for(COMPONENT_I8, 1048575, false).threads == 16);
    CHECK(host_schedule_for(COMPONENT_I8, 1048576, true).threads == 16, "in place nothing streams");
    CHECK(host_thresholds()->spills > 4 * 1048576, "as shipped: a cache may hold arrays that are added again");
}

static void
a_file_that_makes_no_sense_changes_nothing(void)
{
    static const char *const rows[] = {
        "threads_awake 65536\n",
        "threads_awake 65536\nend 2\n",
        "threads_awake 65536 7\nend 1\n",
        "threads_awake 0\nend 1\n",
        "threads_asleep 1e30\nend 1\n",
        "threads_awake 65536\nhow_long 3\nend 2\n",
        "threads_awake 65536\nblock 1000000\nend 2\n",
        "threads_awake 65536\nblock 4096\nend 2\n",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const pid_t child = fork(); /* thresholds are found once a process */
        if (child == 0) {
            tuned_to(rows[i]);
            _exit(host_thresholds()->tuned || host_thresholds()->threads_awake != 128 << 10);
        }
        int how = -1;
        CHECK(waitpid(child, &how, 0) == child && how == 0, "%zu", i);
    }
}

static void
blocks_are_whole_cache_lines_and_divide_addresses(void)
{
    for (enum component component = 0; component < COMPONENT_COUNT; component++)
        for (size_t n = 1; n < (size_t)1 << 32; n = n * 3 + 1) {
            const size_t bytes = host_schedule_with(component, n, 5, false).block * component_size[component];
            CHECK(bytes >= 64 && (bytes & (bytes - 1)) == 0, "%zu", bytes);
        }
}

static void
caches_grow_with_their_level(void)
{
    CHECK(host_cache_bytes(0) == 0 && host_cache_bytes(4) == 0);
    CHECK(host_cache_bytes(2) == 0 || host_cache_bytes(2) > host_cache_bytes(1));
}

int
main(void)
{
    RUN(small_arrays_stay_on_one_thread_with_ordinary_stores);
    RUN(large_arrays_get_all_threads_and_streaming_stores_unless_in_place);
    RUN(what_the_caches_hold_has_ordinary_stores);
    RUN(what_is_repeated_needs_no_room_in_a_cache);
    RUN(stores_of_what_the_caches_may_hold_are_learned);
    RUN(sums_that_move_have_a_choice_of_stores_and_others_have_none);
    RUN(arrays_between_have_the_threads_that_are_awake);
    RUN(sums_that_leave_the_first_cache_have_the_shorter_vectors);
    RUN(a_level_that_is_named_is_that_of_every_size);
    RUN(every_thread_has_a_block);
    RUN(thresholds_are_those_that_were_tuned);
    RUN(two_threads_need_no_share_of_that_size);
    RUN(threads_that_never_pay_awake_are_never_woken);
    RUN(threads_that_stream_are_as_many_as_were_tuned);
    RUN(a_file_that_makes_no_sense_changes_nothing);
    RUN(blocks_are_whole_cache_lines_and_divide_addresses);
    RUN(caches_grow_with_their_level);
    return check_report();
}
