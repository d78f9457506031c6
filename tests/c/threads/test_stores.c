/* A job that may use streaming or ordinary stores uses those that were quicker, unless its caller is alone. */
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "base/cpus.h"
#include "check.h"
#include "host/stores.h"
#include "host/ways.h"
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

/* A job with a choice of stores, whose threads are all woken. */
static struct threads_job
job_into(const void *sum, struct stored *stored)
{
    return (struct threads_job){.threads = 2,
                                .n = N,
                                .block = 8,
                                .body = store_streaming,
                                .ordinary = store_ordinary,
                                .sum = sum,
                                .bytes = BYTES,
                                .context = stored};
}

static void
run(struct stored *stored, bool short_job)
{
    struct threads_job job = job_into(NULL, stored);
    job.alone = short_job ? store_alone : NULL;
    threads_run_job(&job);
}

/* Makes one kind of stores the quicker one, past the calls that try both. */
static void
know(bool streaming_is_quicker)
{
    stores_forget();
    for (int i = 0; i < SOME_CALLS; i++) {
        const bool streaming = stores_choose_streaming(BYTES, false);
        stores_note(BYTES, false, streaming, streaming == streaming_is_quicker ? 1000 : 1000000);
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
    CHECK(!stores_prefer_streaming(BYTES, false), "streaming stores take longer");
}

static void
store_slowly_on_a_fresh_page(void *context, size_t begin, size_t end, int worker)
{
    enum { PAGE = 4096 };
    volatile char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *page = 1;
    munmap((void *)page, PAGE);
    store_streaming(context, begin, end, worker);
}

/* Makes calls with awake workers into two sums in turn. Returns whether streaming stores are preferred then. */
static bool
prefers_streaming_after(threads_body *streaming)
{
    static const char memory[2];
    stores_forget();
    wake_workers(2);
    for (int i = 0; i < SOME_CALLS; i++) {
        struct stored stored = {0};
        struct threads_job job = job_into(&memory[i % 2], &stored);
        job.body = streaming;
        job.ordinary_again = true;
        threads_run_job(&job);
    }
    return stores_prefer_streaming(BYTES, true);
}

static void
what_a_call_takes_that_faults_pages_in_is_not_noted_of_sums_that_move(void)
{
    if (cpus_usable() < 2)
        return; /* a worker sleeps at once */
    CHECK(!prefers_streaming_after(store_streaming), "streaming stores take longer");
    CHECK(prefers_streaming_after(store_slowly_on_a_fresh_page), "but for the pages");
}

/* Runs a job into the memory of the last one, whose worker has fallen asleep, so long after it. */
static void
run_after(long long ns, struct stored *stored)
{
    struct threads_job job = job_into(stored, stored);
    job.alone = store_alone;
    job.ordinary_again = true;
    ways_forget();
    pass_ns(atomic_load(&atomic_load(&runtime.threads)->ended) - atomic_load(&caller_ns) + ns);
    threads_run_job(&job);
}

static void
a_sum_in_the_same_memory_streams_after_a_rest_alone(void)
{
    enum { MS = 1000000 };
    struct stored stored = {0};
    wake_workers(2);
    atomic_store(&workers_tire, true);
    CHECK(all_workers_fall_asleep());
    run_after(MS, &stored); /* the first, which moves */
    for (int i = 0; i < 2; i++) {
        const long long pause = i ? 100LL * MS : MS;
        CHECK(all_workers_fall_asleep());
        stored = (struct stored){0};
        run_after(pause, &stored);
        const int together = atomic_load(i ? &stored.streaming : &stored.ordinary);
        CHECK(together > 0 && together + atomic_load(&stored.alone) == N, "%d: %d", i, together);
    }
}

int
main(void)
{
    set_clock();
    RUN(the_quicker_stores_are_used_whether_workers_sleep_or_not);
    RUN(each_call_adds_all_while_both_are_tried);
    RUN(what_calls_take_is_noted);
    RUN(what_a_call_takes_that_faults_pages_in_is_not_noted_of_sums_that_move);
    RUN(a_sum_in_the_same_memory_streams_after_a_rest_alone);
    return check_report();
}
