/* Two threads or the caller alone: both in turns at first, then what was quicker. Times are made up. */
#include <stdbool.h>
#include <stddef.h>

#include "check.h"
#include "host/second_thread.h"

enum { KIB = 1 << 10, CALLS = 20000, BEGIN = 16 };

static const size_t BYTES = 300 * KIB;

struct made {
    int together, timed;
};

/* Makes calls that take so long alone and together, and notes those that are timed. */
static struct made
make_calls(long long alone, long long together, int calls)
{
    struct made made = {0, 0};
    for (int i = 0; i < calls; i++) {
        bool timed;
        const bool both = second_thread_choose(BYTES, false, &timed);
        if (timed)
            second_thread_note(BYTES, false, both, both ? together : alone);
        made.together += both;
        made.timed += timed;
    }
    return made;
}

static void
both_are_tried_at_first(void)
{
    second_thread_forget();
    const struct made made = make_calls(8000, 8000, BEGIN);
    CHECK(made.together == BEGIN / 2 && made.timed == BEGIN, "%d together, %d timed", made.together, made.timed);
}

static void
the_quicker_is_kept_and_few_calls_are_timed(void)
{
    static const long long together[] = {4500, 6000, 9000, 12000};
    for (size_t i = 0; i < sizeof together / sizeof *together; i++) {
        second_thread_forget();
        make_calls(8000, together[i], BEGIN);
        const struct made made = make_calls(8000, together[i], CALLS);
        const int right = together[i] < 8000 ? made.together : CALLS - made.together;
        CHECK(right >= CALLS * 99 / 100, "%lld ns: %d of %d", together[i], right, CALLS);
        CHECK(made.timed <= CALLS * 27 / 100, "%d of %d timed", made.timed, CALLS);
    }
}

/* The same in bursts: each has ten calls, if its worker is woken. */
static int
make_bursts(long long alone, long long together, int bursts)
{
    int made = 0;
    for (int i = 0; i < bursts; i++)
        if (second_thread_is_woken(BYTES, false))
            made += make_calls(alone, together, 10).together;
    return made;
}

static void
processors_that_begin_or_end_to_share_a_core_are_noticed(void)
{
    second_thread_forget();
    make_calls(6000, 4000, CALLS);
    make_calls(6000, 8400, 3000);
    CHECK(make_calls(6000, 8400, CALLS).together <= 3 * (CALLS / 1024 + 1), "one core");
    const int tried = make_bursts(6000, 8400, 800);
    CHECK(tried >= 300 && tried <= 303, "%d: three tries each time that the worker is woken", tried);
    make_bursts(6000, 4000, 200);
    CHECK(make_calls(6000, 4000, CALLS).together > CALLS * 99 / 100, "two cores");
}

/* Larger jobs between them keep it awake: no burst wakes it. */
static void
a_worker_that_never_sleeps_is_tried_again(void)
{
    second_thread_forget();
    make_calls(6000, 8400, CALLS);
    make_calls(6000, 4000, CALLS);
    CHECK(make_calls(6000, 4000, CALLS).together > CALLS * 99 / 100, "two cores");
}

static void
one_thread_is_not_taken_for_little(void)
{
    second_thread_forget();
    make_calls(7600, 8000, CALLS);
    CHECK(make_calls(7600, 8000, CALLS).together > CALLS * 99 / 100);
}

static void
bursts_seldom_wake_a_worker_that_gains_nothing(void)
{
    second_thread_forget();
    CHECK(second_thread_is_woken(BYTES, false), "not known");
    make_calls(6000, 8400, CALLS);
    int woken = 0;
    for (int i = 0; i < 800; i++)
        woken += second_thread_is_woken(BYTES, false);
    CHECK(woken == 100, "%d", woken);
    CHECK(second_thread_is_woken(4 * BYTES, false), "another size");
}

static void
sums_that_move_are_known_apart(void)
{
    bool timed;
    second_thread_forget();
    make_calls(6000, 8400, CALLS);
    CHECK(!second_thread_choose(BYTES, false, &timed), "one thread was quicker");
    CHECK(second_thread_choose(BYTES, true, &timed) && timed, "not known");
    CHECK(second_thread_is_woken(BYTES, true), "not known");
    for (int i = 0; i < CALLS; i++)
        second_thread_note(BYTES, true, false, 100);
    CHECK(make_calls(6000, 8400, CALLS).together < CALLS / 100, "as before");
}

int
main(void)
{
    RUN(both_are_tried_at_first);
    RUN(the_quicker_is_kept_and_few_calls_are_timed);
    RUN(processors_that_begin_or_end_to_share_a_core_are_noticed);
    RUN(a_worker_that_never_sleeps_is_tried_again);
    RUN(one_thread_is_not_taken_for_little);
    RUN(bursts_seldom_wake_a_worker_that_gains_nothing);
    RUN(sums_that_move_are_known_apart);
    return check_report();
}
