/* A job for two threads whose worker is awake goes to both or to its caller, whichever was quicker. */
#include <stdatomic.h>
#include <stdbool.h>

#include "base/cpus.h"
#include "check.h"
#include "host/second_thread.h"
#include "host/thresholds.h"
#include "jobs.h"
#include "set_clock.h"

enum { N = 64, SOME_CALLS = 100 };

static const size_t BYTES = 256 << 10;

struct added {
    atomic_int together, alone, streamed; /* indices */
};

static void
add_slowly(void *context, size_t begin, size_t end, int worker)
{
    (void)worker;
    pass_ns(5000);
    atomic_fetch_add(&((struct added *)context)->together, (int)(end - begin));
}

static void
add_alone(void *context, size_t begin, size_t end, int worker)
{
    (void)worker;
    pass_ns(20000);
    atomic_fetch_add(&((struct added *)context)->alone, (int)(end - begin));
}

static void
stream_alone(void *context, size_t begin, size_t end, int worker)
{
    (void)worker;
    pass_ns(20000);
    atomic_fetch_add(&((struct added *)context)->streamed, (int)(end - begin));
}

static struct threads_job
job_into(const void *sum, size_t bytes, struct added *added)
{
    return (struct threads_job){.threads = 2,
                                .n = N,
                                .block = 8,
                                .body = add_slowly,
                                .alone = add_alone,
                                .sum = sum,
                                .bytes = bytes,
                                .context = added};
}

/* Makes calls whose worker is awake, into so many sums in turn; returns how many of them the caller made alone. */
static int
make_calls_into(int sums, threads_body *body, int threads, size_t bytes, int calls)
{
    static const char memory[2];
    int alone = 0;
    wake_workers(threads);
    for (int i = 0; i < calls; i++) {
        struct added added = {0};
        struct threads_job job = job_into(&memory[i % sums], bytes, &added);
        job.threads = threads;
        job.body = body;
        threads_run_job(&job);
        CHECK(atomic_load(&added.together) + atomic_load(&added.alone) == N, "each index once");
        alone += atomic_load(&added.alone) == N;
    }
    return alone;
}

static int
make_calls(threads_body *body, int threads, size_t bytes, int calls)
{
    return make_calls_into(1, body, threads, bytes, calls);
}

static void
what_calls_take_is_noted(void)
{
    if (cpus_usable() < 2)
        return; /* where a worker would spin on the caller's processor it sleeps at once */
    second_thread_forget();
    make_calls(add_slowly, 2, BYTES, SOME_CALLS);
    CHECK(!second_thread_is_woken(BYTES, false), "two threads take longer");
}

/* Past the calls that try both. */
static void
know(bool two_are_quicker)
{
    second_thread_forget();
    for (int i = 0; i < SOME_CALLS; i++) {
        bool timed;
        const bool together = second_thread_choose(BYTES, false, &timed);
        second_thread_note(BYTES, false, together, together == two_are_quicker ? 1000 : 2000);
    }
}

static void
the_caller_adds_alone_where_that_is_quicker(void)
{
    know(false);
    const int alone = make_calls(add_slowly, 2, BYTES, SOME_CALLS);
    CHECK(alone > SOME_CALLS / 2, "%d of %d: but for tries", alone, SOME_CALLS);
}

static void
what_is_known_of_one_sum_is_not_known_of_sums_that_move(void)
{
    enum { TRIED_TOGETHER = 8 };
    know(false);
    const int alone = make_calls_into(2, add_slowly, 2, BYTES, 2 * TRIED_TOGETHER);
    CHECK(alone == TRIED_TOGETHER || cpus_usable() < 2, "%d: both are tried", alone);
}

static bool
none_is_counted(size_t bytes)
{
    bool timed, none = true;
    for (int i = 0; i < 4; i++)
        none = second_thread_choose(bytes, false, &timed) && timed && none;
    return none;
}

/* How many of some calls the caller makes alone by streaming stores, its worker awake or asleep at their begin. */
static int
streamed(int sums, bool asleep)
{
    static const char memory[2];
    int count = 0;
    wake_workers(2);
    atomic_store(&workers_tire, asleep);
    if (asleep)
        CHECK(all_workers_fall_asleep());
    for (int i = 0; i < SOME_CALLS; i++) {
        struct added added = {0};
        struct threads_job job = job_into(&memory[i % sums], BYTES, &added);
        job.alone_streaming = stream_alone;
        threads_run_job(&job);
        count += atomic_load(&added.streamed) == N;
    }
    return count;
}

static void
a_caller_alone_streams_a_sum_that_moves(void)
{
    for (int asleep = 0; asleep < 2; asleep++) {
        second_thread_forget();
        const int moved = streamed(2, asleep);
        CHECK(moved > SOME_CALLS / 2, "%d of %d, asleep %d", moved, SOME_CALLS, asleep);
        second_thread_forget();
        CHECK(streamed(1, asleep) <= SOME_CALLS / 10, "a sum that stays");
    }
}

static void
more_than_two_threads_are_not_asked(void)
{
    second_thread_forget();
    make_calls(add_slowly, 3, BYTES, SOME_CALLS);
    CHECK(none_is_counted(BYTES));
}

static void
sums_that_no_l2_cache_holds_have_both_threads(void)
{
    const size_t most = host_thresholds()->l2;
    second_thread_forget();
    make_calls(add_slowly, 2, most + 1, SOME_CALLS);
    CHECK(none_is_counted(most + 1));
    make_calls(add_slowly, 2, most, SOME_CALLS);
    CHECK(!none_is_counted(most) || cpus_usable() < 2);
}

int
main(void)
{
    set_clock();
    RUN(what_calls_take_is_noted);
    RUN(the_caller_adds_alone_where_that_is_quicker);
    RUN(what_is_known_of_one_sum_is_not_known_of_sums_that_move);
    RUN(a_caller_alone_streams_a_sum_that_moves);
    RUN(more_than_two_threads_are_not_asked);
    RUN(sums_that_no_l2_cache_holds_have_both_threads);
    return check_report();
}
