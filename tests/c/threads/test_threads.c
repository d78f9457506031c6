/* The host's threads: every index once, floating-point environments, busy pools, forks. */
#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fpenv.h"
#include "host/threads.h"
#include "jobs.h"
#include "tests.h"

TEST(every_index_is_visited_once)
{
    static const size_t lengths[] = {0, 1, 2, 7, 8, 9, 63, 64, 65, 999, 1000, MANY};
    static const size_t blocks[] = {1, 3, 64, 999, 1 << 20};
    for (int threads = 0; threads <= WORKERS; threads++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            for (size_t j = 0; j < sizeof blocks / sizeof *blocks; j++)
                CHECK(visits_each_once(threads, lengths[i], blocks[j]), "%d threads, %zu in blocks of %zu", threads,
                      lengths[i], blocks[j]);
}

TEST(all_workers_take_part_awake_or_asleep)
{
    for (int round = 0; round < 4; round++) {
        CHECK(all_threads_take_part(4), "round %d", round);
        if (round % 2)
            CHECK(all_workers_fall_asleep());
    }
}

enum { DELAYED_BLOCKS = 64, PATIENCE_US = 10000000 };

struct delayed {
    int worker;        /* that stays in its first block until all other blocks are done */
    atomic_bool begun; /* it is in there; no other block begins before */
    atomic_int done;   /* blocks */
    int done_meanwhile;
};

static bool
wait_until(const struct delayed *delayed, int done)
{
    for (long waited = 0; waited < PATIENCE_US; waited += 100) {
        if (atomic_load(&delayed->begun) && atomic_load(&delayed->done) >= done)
            return true;
        sleep_us(100);
    }
    return false;
}

static void
delay_one(void *context, size_t begin, size_t end, int worker)
{
    struct delayed *delayed = context;
    (void)begin, (void)end;
    if (worker == delayed->worker && !atomic_exchange(&delayed->begun, true)) {
        wait_until(delayed, DELAYED_BLOCKS - 1);
        delayed->done_meanwhile = atomic_load(&delayed->done);
    } else {
        wait_until(delayed, 0);
    }
    atomic_fetch_add(&delayed->done, 1);
}

/* As a slow processor would be: it has one block, the others all the rest of its slice, and where threads keep to their
 * own, the caller has it. */
TEST(one_thread_that_is_delayed_delays_only_its_block)
{
    for (int worker = 0; worker < 4; worker++) {
        for (int stays = 0; stays < 2 && worker >= stays; stays++) {
            struct delayed delayed = {.worker = worker};
            const struct host_schedule schedule = {
                .threads = 4, .starts = 3, .wakes = true, .stays_in_slice = stays, .block = 1};
            threads_run(&schedule, DELAYED_BLOCKS, delay_one, &delayed, NULL);
            CHECK(atomic_load(&delayed.begun), "worker %d took no part", worker);
            CHECK(delayed.done_meanwhile == DELAYED_BLOCKS - 1, "worker %d: %d blocks", worker, delayed.done_meanwhile);
        }
    }
}

static void
run_inside(void *context, size_t begin, size_t end, int worker)
{
    (void)begin, (void)end, (void)worker;
    if (!visits_each_once(4, 100, 3))
        atomic_fetch_add((atomic_int *)context, 1);
}

TEST(a_job_may_run_another)
{
    atomic_int wrong = 0;
    threads_run_all(4, 32, 1, run_inside, &wrong);
    CHECK(atomic_load(&wrong) == 0);
}

static void *
run_many(void *argument)
{
    (void)argument;
    for (int i = 0; i < 300; i++)
        CHECK(visits_each_once(1 + i % WORKERS, (size_t)(i * 37 % MANY), 16));
    return NULL;
}

TEST(several_callers_share_one_pool)
{
    pthread_t callers[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&callers[i], NULL, run_many, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(callers[i], NULL);
}

struct sums {
    volatile float a, b;
    atomic_uint as_expected, others;
    float expected;
};

static void
sum_slowly(void *context, size_t begin, size_t end, int worker)
{
    struct sums *sums = context;
    (void)begin, (void)end, (void)worker;
    const float sum = sums->a + sums->b;
    atomic_fetch_add(sum == sums->expected ? &sums->as_expected : &sums->others, 1);
    sleep_us(500);
}

TEST(workers_round_as_the_caller_does)
{
    static const int modes[] = {FE_UPWARD, FE_TONEAREST, FE_DOWNWARD, FE_UPWARD};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        struct sums sums = {.a = 1, .b = 0x1p-30f};
        sums.expected = modes[i] == FE_UPWARD ? 0x1.000002p0f : 1;
        fesetround(modes[i]);
        threads_run_all(4, 32, 1, sum_slowly, &sums);
        CHECK(fegetround() == modes[i]);
        CHECK(atomic_load(&sums.as_expected) == 32 && atomic_load(&sums.others) == 0, "mode %#x", modes[i]);
    }
}

static void
overflow_at_one_place(void *context, size_t begin, size_t end, int worker)
{
    struct sums *sums = context;
    (void)end, (void)worker;
    sleep_us(200);
    if (begin == (size_t)sums->expected)
        sums->b = sums->a + sums->a;
}

TEST(flags_of_every_thread_are_returned_and_the_callers_kept)
{
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(FE_INVALID);
    for (int where = 0; where < 64; where += 9) {
        struct sums sums = {.a = 3e38f, .expected = (float)where};
        CHECK(threads_run_all(4, 64, 1, overflow_at_one_place, &sums) == FP_OVERFLOW, "at %d", where);
        sums.a = 1;
        CHECK(threads_run_all(4, 64, 1, overflow_at_one_place, &sums) == 0, "stale flags after %d", where);
        CHECK(fpenv_flags(fpenv_get()) == FP_INVALID);
    }
}

#if !defined(__SANITIZE_THREAD__) /* it knows no threads in a child of a process that has some */

static atomic_int busy;
static atomic_bool forking_is_over;

static void
stay_until_forking_is_over(void *context, size_t begin, size_t end, int worker)
{
    (void)context, (void)begin, (void)end, (void)worker;
    atomic_fetch_add(&busy, 1);
    while (!atomic_load(&forking_is_over))
        sleep_us(100);
}

/* All workers have begun before a thread forks: a thread that is just starting has a lock of AddressSanitizer's own,
 * which its child would wait for. */
static void *
keep_the_pool_busy(void *argument)
{
    (void)argument;
    threads_run_all(3, 3, 1, stay_until_forking_is_over, NULL);
    return NULL;
}

static int
status_of_child_with_threads(void)
{
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        const bool right = all_threads_take_part(3) && visits_each_once(3, 1000, 10);
        threads_stop();
        _exit(right ? 0 : 1);
    }
    int how = -1;
    return waitpid(child, &how, 0) == child ? how : -1;
}

TEST(a_child_forked_in_the_middle_of_a_job_has_its_own_threads)
{
    pthread_t other;
    pthread_create(&other, NULL, keep_the_pool_busy, NULL);
    while (atomic_load(&busy) < 3)
        sleep_us(100);
    for (int i = 0; i < 10; i++) {
        const int how = status_of_child_with_threads();
        CHECK(how == 0, "child %d ended with %#x", i, (unsigned)how);
    }
    atomic_store(&forking_is_over, true);
    pthread_join(other, NULL);
}

#endif

static int
threads_of_this_process(void)
{
    int count = 0;
    char line[256];
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "Threads: %d", &count);
    if (file)
        fclose(file);
    return count;
}

TEST(stopping_joins_and_the_next_job_starts_again)
{
    CHECK(visits_each_once(2, 1000, 10)); /* a sanitizer starts a thread of its own with the first one */
    const int before = threads_of_this_process() - 1;
    threads_stop();
    for (int i = 0; i < 20; i++) {
        CHECK(visits_each_once(4, 1000, 10));
        CHECK(threads_of_this_process() == before + 3);
        threads_stop();
        CHECK(threads_of_this_process() == before);
    }
}

TEST(nothing_is_started_for_one_thread_or_one_block)
{
    const int before = threads_of_this_process();
    CHECK(visits_each_once(1, 1000, 10));
    CHECK(visits_each_once(8, 10, 10));
    CHECK(threads_of_this_process() == before);
}
