/* A job that may use streaming or ordinary stores uses those that were quicker, unless its caller is alone. */
#include <stdatomic.h>
#include <stdbool.h>

#include "base/cpus.h"
#include "check.h"
#include "host/stores.h"
#include "jobs.h"
#include "set_clock.h"

enum { N = 64, SOME_CALLS = 100 };

static const size_t BYTES = 8 << 20;

struct stored {
    atomic_int streaming, ordinary, alone; /* indices */
};

static void
store_streaming(void *context, size_t begin, size_t end, int worker)
{
    (void)worker;
    pass_ns(1000);
    atomic_fetch_add(&((struct stored *)context)->streaming, (int)(end - begin));
}

static void
store_ordinary(void *context, size_t begin, size_t end, int worker)
{
    (void)worker;
    atomic_fetch_add(&((struct stored *)context)->ordinary, (int)(end - begin));
}

static void
store_alone(void *context, size_t begin, size_t end, int worker)
{
    (void)worker;
    atomic_fetch_add(&((struct stored *)context)->alone, (int)(end - begin));
}

static void
run(struct stored *stored, bool short_job)
{
    const struct threads_job job = {.threads = 2,
                                    .n = N,
                                    .block = 8,
                                    .body = store_streaming,
                                    .ordinary = store_ordinary,
                                    .bytes = BYTES,
                                    .alone = short_job ? store_alone : NULL,
                                    .context = stored};
    threads_run_job(&job);
}

/* Makes one kind of stores the quicker one, past the calls that try both. */
static void
know(bool streaming_is_quicker)
{
    stores_forget();
    for (int i = 0; i < SOME_CALLS; i++) {
        const bool streaming = stores_choose_streaming(BYTES);
        stores_note(BYTES, streaming, streaming == streaming_is_quicker ? 1000 : 1000000);
    }
}

static void
the_quicker_stores_are_used_whether_workers_sleep_or_not(void)
{
    for (int streaming = 0; streaming < 2; streaming++)
        for (int short_job = 0; short_job < 2; short_job++)
            for (int asleep = 0; asleep < 2; asleep++) {
                struct stored stored = {0};
                wake_workers(2);
                know(streaming);
                atomic_store(&workers_tire, asleep);
                if (asleep)
                    sleep_us(5000);
                run(&stored, short_job);
                const int quicker = atomic_load(streaming ? &stored.streaming : &stored.ordinary);
                CHECK(quicker + (short_job ? atomic_load(&stored.alone) : 0) == N,
                      "streaming %d, short %d, asleep %d: %d and %d, alone %d", streaming, short_job, asleep,
                      atomic_load(&stored.streaming), atomic_load(&stored.ordinary), atomic_load(&stored.alone));
            }
    stores_forget();
}

static void
each_call_adds_all_while_both_are_tried(void)
{
    stores_forget();
    wake_workers(2);
    for (int i = 1; i <= SOME_CALLS; i++) {
        struct stored stored = {0};
        run(&stored, i % 2);
        CHECK(atomic_load(&stored.streaming) + atomic_load(&stored.ordinary) + atomic_load(&stored.alone) == N);
    }
}

static void
what_calls_take_is_noted(void)
{
    if (cpus_usable() < 2)
        return; /* where a worker would spin on the caller's processor it sleeps at once */
    stores_forget();
    wake_workers(2);
    for (int i = 0; i < SOME_CALLS; i++) {
        struct stored stored = {0};
        run(&stored, true);
    }
    CHECK(!stores_prefer_streaming(BYTES), "streaming stores take longer");
}

int
main(void)
{
    set_clock();
    RUN(the_quicker_stores_are_used_whether_workers_sleep_or_not);
    RUN(each_call_adds_all_while_both_are_tried);
    RUN(what_calls_take_is_noted);
    return check_report();
}
