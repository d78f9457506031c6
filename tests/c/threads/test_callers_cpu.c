/* A caller that wakes its one worker takes its own of two processors out of the worker's mask, until either sleeps.
 * This file's affinity functions replace the C library's: the process has `usable` processors, the worker `mask`.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/machine.h"
#include "check.h"
#include "jobs.h"
#include "set_clock.h"

enum { CALLERS_CPU = 0 }; /* set_clock.h */

static pthread_t caller;
static unsigned usable = 2;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cpu_set_t mask;
static bool refuses;
static int changes; /* of the mask, by the library */

/* A worker that restores its mask has read it, and does not go on before its caller has set another, or waits. */
static atomic_bool stops_after_reading, has_read, may_go_on;

int
sched_yield(void)
{
    if (is_caller)
        atomic_store(&may_go_on, true);
    return (int)syscall(SYS_sched_yield);
}

int
pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *set)
{
    CHECK(size == sizeof mask && !pthread_equal(thread, caller));
    pthread_mutex_lock(&lock);
    *set = mask;
    pthread_mutex_unlock(&lock);
    if (!is_caller && atomic_load(&stops_after_reading)) {
        atomic_store(&has_read, true);
        for (int ms = 0; ms < PATIENCE_MS && !atomic_load(&may_go_on); ms++)
            sleep_us(1000);
    }
    return 0;
}

int
pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set)
{
    CHECK(size == sizeof mask && CPU_COUNT(set) > 0 && !pthread_equal(thread, caller));
    if (is_caller)
        syscall(SYS_sched_yield); /* the worker may look meanwhile */
    pthread_mutex_lock(&lock);
    const bool refused = refuses;
    if (!refused) {
        mask = *set;
        changes++;
    }
    pthread_mutex_unlock(&lock);
    if (is_caller)
        atomic_store(&may_go_on, true);
    return refused ? EPERM : 0;
}

/* The processors first ... first + count - 1. */
static cpu_set_t
processors(unsigned first, unsigned count)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (unsigned cpu = first; cpu < first + count; cpu++)
        CPU_SET(cpu, &set);
    return set;
}

static cpu_set_t
both(void)
{
    return processors(CALLERS_CPU, 2);
}

int
sched_getaffinity(pid_t process, size_t size, cpu_set_t *set)
{
    (void)process;
    CHECK(size >= sizeof *set);
    memset(set, 0, size);
    *set = processors(CALLERS_CPU, usable);
    return 0;
}

static void
set_mask(cpu_set_t set)
{
    pthread_mutex_lock(&lock);
    mask = set;
    changes = 0;
    pthread_mutex_unlock(&lock);
}

static bool
mask_is(cpu_set_t set)
{
    pthread_mutex_lock(&lock);
    const bool is = CPU_EQUAL(&mask, &set);
    pthread_mutex_unlock(&lock);
    return is;
}

/* A worker that a caller has woken, but that has had no processor since, still counts as asleep. */
static bool
mask_becomes(cpu_set_t set)
{
    for (int ms = 0; ms < PATIENCE_MS && !mask_is(set); ms++)
        sleep_us(1000);
    return mask_is(set);
}

static void
let_workers_sleep(void)
{
    atomic_store(&workers_tire, true);
    CHECK(all_workers_fall_asleep());
}

/* A worker that sleeps, with these processors, wakes for a job. */
static void
wake_with(cpu_set_t usual)
{
    wake_workers(2);
    let_workers_sleep();
    set_mask(usual);
    wake_workers(2);
}

static void
a_worker_is_kept_off_until_it_sleeps(void)
{
    for (int i = 0; i < 100; i++) {
        wake_with(both());
        CHECK(mask_is(processors(CALLERS_CPU + 1, 1)));
        CHECK(all_threads_take_part(2));
        CHECK(changes == 1, "one that is awake is left alone");
        let_workers_sleep();
        CHECK(mask_is(both()));
    }
}

static void
processors_that_the_program_chose_meanwhile_stay(void)
{
    wake_with(both());
    set_mask(processors(CALLERS_CPU, 1));
    let_workers_sleep();
    CHECK(mask_is(processors(CALLERS_CPU, 1)));
}

static void
a_callers_new_mask_stays_where_the_worker_restores_its_own_meanwhile(void)
{
    wake_with(both());
    atomic_store(&may_go_on, false);
    atomic_store(&has_read, false);
    atomic_store(&stops_after_reading, true);
    atomic_store(&workers_tire, true);
    for (int ms = 0; ms < PATIENCE_MS && !atomic_load(&has_read); ms++)
        sleep_us(1000);
    CHECK(atomic_load(&has_read));
    usable = 1;
    CHECK(all_threads_take_part(3), "one more than are awake: so the mask is looked at");
    atomic_store(&stops_after_reading, false);
    let_workers_sleep();
    CHECK(mask_is(processors(CALLERS_CPU, 1)));
    usable = 2;
    threads_stop();
}

struct stay {
    atomic_bool begun, restored;
};

/* The worker stays in its block until it has its processors again; its caller tires of spinning meanwhile. */
static void
stay_until_restored(void *context, size_t begin, size_t end, int worker)
{
    struct stay *stay = context;
    (void)begin, (void)end;
    if (worker == 1) {
        atomic_store(&stay->begun, true);
        for (int ms = 0; ms < PATIENCE_MS && !mask_is(both()); ms++) {
            pass_ns(1000000);
            sleep_us(1000);
        }
        atomic_store(&stay->restored, mask_is(both()));
    }
    for (int ms = 0; ms < PATIENCE_MS && !atomic_load(&stay->begun); ms++)
        sleep_us(1000);
}

static void
a_caller_that_sleeps_leaves_its_processor_to_the_worker(void)
{
    struct stay stay = {0};
    wake_with(both());
    threads_run_all(2, 2, 1, stay_until_restored, &stay);
    CHECK(atomic_load(&stay.restored));
}

static void
a_worker_keeps_processors_that_it_needs_or_cannot_change(void)
{
    wake_with(processors(CALLERS_CPU, 1));
    let_workers_sleep();
    CHECK(changes == 0, "the only one");
    wake_with(processors(CALLERS_CPU + 1, 2));
    let_workers_sleep();
    CHECK(changes == 0, "the caller's is none of them");
    wake_with(processors(CALLERS_CPU, 4));
    let_workers_sleep();
    CHECK(changes == 0, "four, of which a control group may use two at a time");
    refuses = true;
    wake_with(both());
    let_workers_sleep();
    refuses = false;
    CHECK(changes == 0 && mask_is(both()), "refused");
}

static void
more_threads_or_processors_are_left_to_the_system(void)
{
    wake_workers(3);
    let_workers_sleep();
    set_mask(both());
    wake_workers(3);
    CHECK(changes == 0, "three threads");
    let_workers_sleep(); /* the next job then wakes one, and so gives both the caller's four processors */
    usable = 4;
    threads_count_forget();
    wake_with(both());
    CHECK(changes == 0 || cpus_usable() < 4, "four processors"); /* a control group may allow less */
}

static void
visit_nothing(void *context, size_t begin, size_t end, int worker)
{
    (void)context, (void)begin, (void)end, (void)worker;
}

/* Jobs that begin as the worker goes to sleep: now and then it sees the job while its caller sets the mask. */
static void
workers_that_fall_asleep_meanwhile_are_restored_too(void)
{
    threads_stop();
    set_mask(both());
    atomic_store(&workers_tire, true);
    for (int i = 0; i < 20000; i++)
        threads_run_all(2, 2, 1, visit_nothing, NULL);
    CHECK(all_workers_fall_asleep());
    CHECK(mask_becomes(both()));
}

int
main(void)
{
    set_clock();
    caller = pthread_self();
    if (cpus_usable() == 2) {
        RUN(a_worker_is_kept_off_until_it_sleeps);
        RUN(a_caller_that_sleeps_leaves_its_processor_to_the_worker);
        RUN(processors_that_the_program_chose_meanwhile_stay);
        RUN(a_callers_new_mask_stays_where_the_worker_restores_its_own_meanwhile);
        RUN(a_worker_keeps_processors_that_it_needs_or_cannot_change);
        RUN(workers_that_fall_asleep_meanwhile_are_restored_too);
        RUN(more_threads_or_processors_are_left_to_the_system);
    }
    return check_report();
}
