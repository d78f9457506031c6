/* Several threads make calls by one estimate of the routes: at most one of them tries a route at a time. */
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"
#include "choose/estimate.h"
#include "transfer/transfer.h"

enum { THREADS = 4, CALLS = 5000, LEARNT = THREADS * CALLS / 4, MOST_CALLS = 1000 * CALLS, MS = 1000000 };

static struct route_estimate estimate;
static atomic_int trying, together, trials, through_gpu;

/* A thread that loses its processor while it tries a route keeps the others from it, which go on until it is back. */
static void *
make_calls(void *seed)
{
    for (int i = 0; i < CALLS || (i < MOST_CALLS && atomic_load(&through_gpu) <= LEARNT); i++) {
        const struct estimate_job job = {.bytes = (size_t)HYBRID_MIN << (i + *(int *)seed) % 3,
                                         .components = CLASS_WIDE,
                                         .threads = 1 + (i >= 4000)};
        const struct estimate_choice choice = estimate_begin(&estimate, &job);
        const bool trial = choice.stage == ESTIMATE_TRIAL;
        if (trial && atomic_fetch_add(&trying, 1) > 0)
            atomic_fetch_add(&together, 1);
        atomic_fetch_add(&trials, trial);
        atomic_fetch_add(&through_gpu, choice.route != ROUTE_HOST);
        if (trial)
            atomic_fetch_sub(&trying, 1);
        estimate_end(&estimate, &job, &choice, choice.route == ROUTE_HOST ? 100 * MS : 10 * MS);
    }
    return NULL;
}

static void
one_thread_tries_at_a_time(void)
{
    pthread_t thread[THREADS];
    int seed[THREADS];
    for (int i = 0; i < THREADS; i++) {
        seed[i] = i;
        CHECK(pthread_create(&thread[i], NULL, make_calls, &seed[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    CHECK(together == 0 && trials >= 3 && through_gpu > LEARNT, "%d together, %d trials, %d through the GPU", together,
          trials, through_gpu);
}

int
main(void)
{
    RUN(one_thread_tries_at_a_time);
    return check_report();
}
