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
    atomic_int together, alone; /* indices */
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

/* Makes calls whose worker is awake; returns how many of them the caller made alone. */
static int
make_calls(threads_body *body, int threads, size_t bytes, int calls)
{
    int alone = 0;
    wake_workers(threads);
    for (int i = 0; i < calls; i++) {
        struct added added = {0};
        const struct threads_job job = {.threads = threads,
                                        .n = N,
                                        .block = 8,
                                        .body = body,
                                        .alone = add_alone,
                                        .bytes = bytes,
                                        .context = &added};
        threads_run_job(&job);
        CHECK(atomic_load(&added.together) + atomic_load(&added.alone) == N, "each index once");
        alone += atomic_load(&added.alone) == N;
    }
    return alone;
}

static void
what_calls_take_is_noted(void)
{
    if (cpus_usable() < 2)
        return; /* where a worker would spin on the caller's processor it sleeps at once */
    second_thread_forget();
    make_calls(add_slowly, 2, BYTES, SOME_CALLS);
    CHECK(!second_thread_is_woken(BYTES), "two threads take longer");
}

/* Past the calls that try both. */
static void
know(bool two_are_quicker)
{
    second_thread_forget();
    for (int i = 0; i < SOME_CALLS; i++) {
        bool timed;
        const bool together = second_thread_choose(BYTES, &timed);
        second_thread_note(BYTES, together, together == two_are_quicker ? 1000 : 2000);
    }
}

static void
the_caller_adds_alone_where_that_is_quicker(void)
{
    know(false);
    const int alone = make_calls(add_slowly, 2, BYTES, SOME_CALLS);
    CHECK(alone > SOME_CALLS / 2, "%d of %d: but for tries", alone, SOME_CALLS);
}

static bool
none_is_counted(size_t bytes)
{
    bool timed, none = true;
    for (int i = 0; i < 4; i++)
        none = second_thread_choose(bytes, &timed) && timed && none;
    return none;
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
    RUN(more_than_two_threads_are_not_asked);
    RUN(sums_that_no_l2_cache_holds_have_both_threads);
    return check_report();
}
