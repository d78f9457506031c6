/* Streaming or ordinary stores: both in turns at first, then those that were quicker. Times are made up. */
#include <stdbool.h>
#include <stddef.h>

#include "check.h"
#include "host/stores.h"

enum { MIB = 1 << 20, US = 1000, CALLS = 2000, BEGIN = 16 };

static const size_t BYTES = 8 * MIB;

/* A machine: ns of a job by [streaming] stores, the first with other stores than the last one times 20, and of every
 * `disturbed`-th times 50; 0: of none. */
struct machine {
    long long ns[2];
    int disturbed;
};

static bool last; /* the stores of the last call */

static void
forget(void)
{
    stores_forget();
    last = true;
}

/* Makes calls whose sums move or do not, notes what they took, and counts those that streamed. */
static int
make_calls_of(bool moves, const struct machine *machine, int calls)
{
    int streamed = 0;
    for (int i = 1; i <= calls; i++) {
        const bool streaming = stores_choose_streaming(BYTES, moves),
                   disturbed = machine->disturbed && i % machine->disturbed == 0;
        stores_note(BYTES, moves, streaming,
                    machine->ns[streaming] * (disturbed ? 50 : 1) * (streaming == last ? 1 : 20));
        last = streaming;
        streamed += streaming;
    }
    return streamed;
}

static int
make_calls(const struct machine *machine, int calls)
{
    return make_calls_of(false, machine, calls);
}

static void
a_first_call_streams_and_the_next_ones_try_both(void)
{
    const struct machine machine = {.ns = {300 * US, 300 * US}};
    forget();
    CHECK(stores_prefer_streaming(BYTES, false) && stores_choose_streaming(BYTES, false));
    forget();
    CHECK(make_calls(&machine, BEGIN) == BEGIN / 2);
    CHECK(stores_prefer_streaming(BYTES, false), "neither is quicker");
}

static void
the_quicker_stores_are_found_and_kept(void)
{
    const struct machine machines[] = {
        {.ns = {100 * US, 220 * US}}, {.ns = {600 * US, 500 * US}}, {.ns = {500 * US, 550 * US}}};
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        for (int disturbed = 0; disturbed <= 10; disturbed += 5) {
            struct machine machine = machines[i];
            const bool streaming = machine.ns[true] < machine.ns[false];
            machine.disturbed = disturbed;
            forget();
            make_calls(&machine, BEGIN);
            const int streamed = make_calls(&machine, CALLS), right = streaming ? streamed : CALLS - streamed;
            CHECK(right >= CALLS * (disturbed ? 85 : 97) / 100, "machine %zu: %d of %d, one in %d disturbed", i, right,
                  CALLS, disturbed);
            CHECK(stores_prefer_streaming(BYTES, false) == streaming);
        }
}

static void
slower_stores_are_tried_again_unless_they_are_far_slower(void)
{
    const struct machine close = {.ns = {100 * US, 200 * US}}, far = {.ns = {100 * US, 300 * US}};
    forget();
    make_calls(&close, BEGIN);
    CHECK(make_calls(&close, CALLS) > 0);
    forget();
    make_calls(&far, BEGIN);
    CHECK(make_calls(&far, CALLS) == 0);
}

static void
a_program_that_changes_its_arrays_is_followed(void)
{
    const struct machine again = {.ns = {200 * US, 316 * US}}, others = {.ns = {690 * US, 560 * US}};
    forget();
    make_calls(&again, CALLS);
    make_calls(&others, 40);
    CHECK(stores_prefer_streaming(BYTES, false));
    make_calls(&others, CALLS);
    make_calls(&again, CALLS);
    CHECK(!stores_prefer_streaming(BYTES, false));
}

static void
sizes_learn_apart(void)
{
    static const size_t others[] = {6 * MIB, 10 * MIB, 12 * MIB, 512, (size_t)1 << 40};
    const struct machine machine = {.ns = {100 * US, 220 * US}};
    forget();
    make_calls(&machine, BEGIN);
    CHECK(!stores_prefer_streaming(BYTES, false) && !stores_prefer_streaming(BYTES + MIB, false));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK(stores_prefer_streaming(others[i], false) && stores_choose_streaming(others[i], false), "%zu", others[i]);
}

static void
to_ask_is_no_try(void)
{
    forget();
    for (int i = 0; i < CALLS; i++)
        CHECK(stores_prefer_streaming(BYTES, false));
    CHECK(stores_choose_streaming(BYTES, false));
}

static void
sums_that_move_are_known_apart(void)
{
    const struct machine machine = {.ns = {100 * US, 220 * US}};
    forget();
    make_calls(&machine, CALLS);
    CHECK(!stores_prefer_streaming(BYTES, false));
    CHECK(stores_prefer_streaming(BYTES, true) && stores_choose_streaming(BYTES, true), "not known");
}

static void
sums_that_move_stream_until_ordinary_stores_are_known_to_be_quicker(void)
{
    enum { BEGIN_MOVED = 64 };
    const struct machine held = {.ns = {100 * US, 170 * US}}, spilled = {.ns = {170 * US, 130 * US}};
    forget();
    CHECK(make_calls_of(true, &held, BEGIN_MOVED) == BEGIN_MOVED);
    CHECK(make_calls_of(true, &held, CALLS) < CALLS / 20 && !stores_prefer_streaming(BYTES, true));
    CHECK(make_calls_of(true, &spilled, CALLS) > CALLS / 2 && stores_prefer_streaming(BYTES, true));
    forget();
    CHECK(make_calls_of(true, &spilled, CALLS) > CALLS * 97 / 100);
}

int
main(void)
{
    RUN(a_first_call_streams_and_the_next_ones_try_both);
    RUN(the_quicker_stores_are_found_and_kept);
    RUN(slower_stores_are_tried_again_unless_they_are_far_slower);
    RUN(a_program_that_changes_its_arrays_is_followed);
    RUN(sizes_learn_apart);
    RUN(to_ask_is_no_try);
    RUN(sums_that_move_are_known_apart);
    RUN(sums_that_move_stream_until_ordinary_stores_are_known_to_be_quicker);
    return check_report();
}
