/* A short job has the workers that are awake; they run where its caller may. */
#include <stdatomic.h>

#include "base/machine.h"
#include "check.h"
#include "jobs.h"
#include "set_clock.h"

struct short_job {
    struct roll_call call;
    atomic_int alone; /* jobs that the caller did alone */
};

static void
count_alone(void *context)
{
    atomic_fetch_add(&((struct short_job *)context)->alone, 1);
}

/* On one processor none is: there a worker would spin on the caller's, and sleeps at once. */
static void
a_short_job_has_the_workers_that_are_awake(void)
{
    const bool are_awake = cpus_usable() > 1;
    if (are_awake)
        wake_workers(2);
    for (int i = 0; i < 100; i++) {
        struct short_job job = {.call = {.threads = 2}};
        run_short(2, 2, answer, count_alone, &job);
        CHECK(are_all_present(&job.call) == are_awake && atomic_load(&job.alone) == !are_awake, "job %d", i);
    }
}

static cpu_set_t workers_mask;

static void
note_workers_mask(void *context, size_t begin, size_t end, int worker)
{
    if (worker == 1)
        CHECK(sched_getaffinity(0, sizeof workers_mask, &workers_mask) == 0);
    answer(context, begin, end, worker);
}

/* They are not woken: a job now and then looks whether the caller's mask is another one. */
static void
workers_that_stay_awake_follow_their_caller(void)
{
    enum { JOBS = 64 };
    cpu_set_t all, one;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    wake_workers(2);
    CPU_ZERO(&one);
    for (unsigned cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    for (int i = 0; i < JOBS; i++) {
        struct short_job job = {.call = {.threads = 2}};
        run_short(2, 2, note_workers_mask, count_alone, &job);
    }
    CHECK(CPU_EQUAL(&workers_mask, &one));
    CHECK(processors_usable() == 1);
}

int
main(void)
{
    set_clock();
    RUN(a_short_job_has_the_workers_that_are_awake);
    if (cpus_usable() > 1)
        RUN(workers_that_stay_awake_follow_their_caller);
    return check_report();
}
