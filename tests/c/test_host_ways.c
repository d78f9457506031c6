/* Which way a short job takes whose workers sleep: by estimates at first, then by what its calls took. Times are made
 * up. */
#include <stdbool.h>

#include "check.h"
#include "host/ways.h"

enum { KIB = 1 << 10, MIB = 1 << 20, US = 1000, CALLS = 1000 };

static const struct ways_job on_16 = {.bytes = MIB, .l2 = 2 * MIB, .asleep = 15};

/* A machine: ns of each way for on_16's bytes, and the time of every `disturbed`-th call times 50; 0: of none. */
struct machine {
    long long ns[WAYS];
    int disturbed;
};

static enum way
chosen(size_t bytes, int awake, int asleep, bool rested, int *sleepers)
{
    const struct ways_job job = {.bytes = bytes, .l2 = 2 * MIB, .awake = awake, .asleep = asleep, .rested = rested};
    return ways_choose(&job, sleepers);
}

static bool
wakes(size_t bytes, int asleep)
{
    int sleepers;
    return chosen(bytes, 0, asleep, false, &sleepers) == WAY_WOKEN;
}

/* Makes calls, notes what they took, and counts how often each way was taken. */
static void
make_calls(const struct ways_job *job, const struct machine *machine, int calls, int count[WAYS])
{
    for (int way = 0; way < WAYS; way++)
        count[way] = 0;
    for (int i = 1; i <= calls; i++) {
        int sleepers;
        const enum way way = ways_choose(job, &sleepers);
        const bool disturbed = machine->disturbed && i % machine->disturbed == 0;
        ways_note_job(job, way, machine->ns[way] * (disturbed ? 50 : 1));
        count[way]++;
    }
}

static void
a_first_call_wakes_as_many_as_the_size_and_the_processors_suggest(void)
{
    int few, many;
    ways_forget();
    CHECK(!wakes(4 * KIB, 15) && !wakes(128 * KIB, 15) && !wakes(256 * KIB, 15));
    CHECK(chosen(MIB, 0, 15, false, &few) == WAY_WOKEN && few >= 3 && few <= 15, "%d", few);
    CHECK(chosen(16 * MIB, 0, 15, false, &many) == WAY_WOKEN && many > few, "%d and %d", few, many);
    CHECK(chosen(16 * MIB, 0, 1, false, &few) == WAY_WOKEN && few == 1);
    CHECK(chosen(16 * MIB, 0, 0, false, &few) == WAY_ALONE && few == 0, "there is none");
}

static void
after_a_long_rest_smaller_jobs_wake(void)
{
    int sleepers;
    ways_forget();
    CHECK(chosen(512 * KIB, 0, 15, false, &sleepers) == WAY_ALONE);
    CHECK(chosen(512 * KIB, 0, 15, true, &sleepers) == WAY_WOKEN);
}

static void
what_a_wake_has_cost_moves_the_bound(void)
{
    ways_forget();
    for (int i = 0; i < 4; i++)
        ways_note_late(5 * US);
    CHECK(wakes(512 * KIB, 15), "workers come at once");
    ways_forget();
    for (int i = 0; i < 4; i++)
        ways_note_late(200 * US);
    CHECK(!wakes(MIB, 15), "workers come late");
    ways_forget();
    for (int i = 0; i < 4; i++)
        ways_note_calls(10, 1000 * US);
    CHECK(!wakes(MIB, 15), "each wake holds up its caller for 100 us");
}

static void
workers_that_are_awake_leave_less_to_gain(void)
{
    int sleepers;
    ways_forget();
    CHECK(chosen(4 * MIB, 1, 14, false, &sleepers) == WAY_WOKEN && sleepers > 0);
    CHECK(chosen(4 * MIB, 12, 3, false, &sleepers) == WAY_ALONE);
    CHECK(chosen(64 * MIB, 12, 3, false, &sleepers) == WAY_WOKEN && sleepers == 3);
}

static void
the_quickest_way_is_found_and_kept(void)
{
    const struct machine machines[] = {
        {.ns = {100 * US, 130 * US, 160 * US, 170 * US}},
        {.ns = {100 * US, 60 * US, 95 * US, 90 * US}},
        {.ns = {200 * US, 150 * US, 50 * US, 70 * US}},
        {.ns = {200 * US, 150 * US, 70 * US, 50 * US}},
    };
    struct ways_job job = on_16;
    job.streams = job.woken_stream = true;
    for (int fastest = 0; fastest < WAYS; fastest++)
        for (int disturbed = 0; disturbed <= 10; disturbed += 5) {
            struct machine machine = machines[fastest];
            int count[WAYS];
            machine.disturbed = disturbed;
            ways_forget();
            make_calls(&job, &machine, CALLS, count);
            CHECK(count[fastest] >= CALLS * 94 / 100, "way %d: %d, %d, %d and %d calls, one in %d disturbed", fastest,
                  count[0], count[1], count[2], count[3], disturbed);
        }
}

static void
the_stores_that_come_first_are_used_until_others_are_known_to_be_quicker(void)
{
    const struct machine close = {.ns = {400 * US, 400 * US, 100 * US, 105 * US}},
                         far = {.ns = {400 * US, 400 * US, 100 * US, 150 * US}};
    for (int stream_first = 0; stream_first < 2; stream_first++) {
        struct ways_job job = on_16;
        const enum way first = stream_first ? WAY_WOKEN_STREAMING : WAY_WOKEN;
        int count[WAYS], sleepers;
        job.woken_stream = true;
        job.stream_first = stream_first;
        ways_forget();
        CHECK(ways_choose(&job, &sleepers) == first && sleepers > 0, "%d", stream_first);
        make_calls(&job, &close, CALLS, count);
        CHECK(count[first] >= CALLS * 94 / 100, "%d of %d", count[first], CALLS);
        ways_forget();
        make_calls(&job, &far, CALLS, count);
        CHECK(count[WAY_WOKEN] >= CALLS * 94 / 100, "%d of %d", count[WAY_WOKEN], CALLS);
        job.bytes = 64 * MIB;
        job.awake = 12;
        job.asleep = 3;
        CHECK(ways_choose(&job, &sleepers) == first && sleepers == 3, "with others that are awake");
    }
}

static void
a_slow_first_call_decides_nothing(void)
{
    const struct ways_job job = {.bytes = 512 * KIB, .l2 = 2 * MIB, .asleep = 15};
    const struct machine machine = {.ns = {[WAY_ALONE] = 25 * US, [WAY_WOKEN] = 60 * US}};
    int count[WAYS];
    ways_forget();
    ways_note_job(&job, WAY_ALONE, 200 * US);
    make_calls(&job, &machine, CALLS, count);
    CHECK(count[WAY_ALONE] >= CALLS * 99 / 100, "%d", count[WAY_ALONE]);
}

static void
a_way_that_is_not_possible_is_not_taken(void)
{
    const struct machine machine = {
        .ns = {[WAY_ALONE] = 100 * US, [WAY_STREAMING] = 1, [WAY_WOKEN] = 1, [WAY_WOKEN_STREAMING] = 1}};
    struct ways_job job = on_16;
    int count[WAYS];
    job.asleep = 0;
    job.woken_stream = job.stream_first = true;
    ways_forget();
    make_calls(&job, &machine, CALLS, count);
    CHECK(count[WAY_ALONE] == CALLS);
    job = on_16;
    make_calls(&job, &machine, CALLS, count);
    CHECK(count[WAY_STREAMING] + count[WAY_WOKEN_STREAMING] == 0);
}

static void
a_small_gain_is_not_worth_other_programs_processors(void)
{
    const struct machine machine = {.ns = {[WAY_ALONE] = 100 * US, [WAY_WOKEN] = 95 * US}};
    int count[WAYS];
    ways_forget();
    make_calls(&on_16, &machine, CALLS, count);
    CHECK(count[WAY_ALONE] >= CALLS * 9 / 10, "%d of %d", count[WAY_ALONE], CALLS);
}

static void
a_machine_that_changes_is_followed(void)
{
    struct machine machine = {.ns = {[WAY_ALONE] = 100 * US, [WAY_WOKEN] = 140 * US}};
    int count[WAYS];
    ways_forget();
    make_calls(&on_16, &machine, CALLS, count);
    CHECK(count[WAY_ALONE] > count[WAY_WOKEN]);
    machine.ns[WAY_ALONE] = 400 * US; /* the caches are somebody else's now */
    make_calls(&on_16, &machine, CALLS, count);
    CHECK(count[WAY_WOKEN] >= CALLS * 8 / 10, "%d of %d", count[WAY_WOKEN], CALLS);
}

static void
sizes_learn_apart(void)
{
    const struct machine slow_alone = {.ns = {[WAY_ALONE] = 900 * US, [WAY_WOKEN] = 100 * US}};
    struct ways_job job = on_16;
    int count[WAYS];
    job.bytes = 256 * KIB;
    ways_forget();
    make_calls(&job, &slow_alone, CALLS, count);
    CHECK(wakes(256 * KIB, 15) && !wakes(128 * KIB, 15));
}

int
main(void)
{
    RUN(a_first_call_wakes_as_many_as_the_size_and_the_processors_suggest);
    RUN(after_a_long_rest_smaller_jobs_wake);
    RUN(what_a_wake_has_cost_moves_the_bound);
    RUN(workers_that_are_awake_leave_less_to_gain);
    RUN(the_quickest_way_is_found_and_kept);
    RUN(the_stores_that_come_first_are_used_until_others_are_known_to_be_quicker);
    RUN(a_slow_first_call_decides_nothing);
    RUN(a_way_that_is_not_possible_is_not_taken);
    RUN(a_small_gain_is_not_worth_other_programs_processors);
    RUN(a_machine_that_changes_is_followed);
    RUN(sizes_learn_apart);
    return check_report();
}
