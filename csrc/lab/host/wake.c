/* How long idle threads of the host take to wake and answer. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "base/util.h"
#include "lab/base/probes.h"

enum {
    ROUNDS = 5,
    IDLE = 2000000, /* ns before a round: threads that spin for work have gone to sleep */
    MAX_THREADS = 256,
};

struct crew {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned turn; /* counts the rounds */
    int members;   /* the threads that answer in this round, the caller among them */
    bool ends;
    atomic_int silent; /* members that have not answered yet */
    int started;       /* threads beside the caller */
    struct member {
        struct crew *crew;
        int number;
        pthread_t thread;
    } member[MAX_THREADS];
};

static void *
member_main(void *argument)
{
    const struct member *member = argument;
    struct crew *crew = member->crew;
    bool ends = false;
    for (unsigned seen = 0; !ends;) {
        pthread_mutex_lock(&crew->lock);
        while (crew->turn == seen)
            pthread_cond_wait(&crew->changed, &crew->lock);
        seen = crew->turn;
        ends = crew->ends;
        const bool answers = member->number < crew->members;
        pthread_mutex_unlock(&crew->lock);
        if (answers)
            atomic_fetch_sub(&crew->silent, 1);
    }
    return NULL;
}

static void
wake(struct crew *crew, int members, bool ends)
{
    pthread_mutex_lock(&crew->lock);
    crew->turn++;
    crew->members = members;
    crew->ends = ends;
    atomic_store(&crew->silent, members - 1);
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->lock);
}

/* The median of all rounds but the first, each after a rest. */
static double
seconds_until_awake(struct crew *crew, int members)
{
    static const struct timespec idle = {.tv_nsec = IDLE};
    double each[ROUNDS];
    for (int round = -1; round < ROUNDS; round++) {
        nanosleep(&idle, NULL);
        const double begin = now_seconds();
        wake(crew, members, false);
        while (atomic_load(&crew->silent) > 0)
            sched_yield();
        each[round < 0 ? 0 : round] = now_seconds() - begin;
    }
    return median(each, ROUNDS);
}

static void
start_others(struct crew *crew, int others)
{
    for (; crew->started < others; crew->started++) {
        struct member *member = &crew->member[crew->started];
        *member = (struct member){.crew = crew, .number = crew->started + 1};
        if (pthread_create(&member->thread, NULL, member_main, member) != 0)
            break;
    }
}

void
limits_wake(int threads, struct wake_limits *limits)
{
    struct crew crew = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    start_others(&crew, (threads < MAX_THREADS ? threads : MAX_THREADS) - 1);
    limits->wake_one = seconds_until_awake(&crew, crew.started ? 2 : 1);
    limits->wake = seconds_until_awake(&crew, crew.started + 1);
    wake(&crew, 1, true);
    for (int i = 0; i < crew.started; i++)
        pthread_join(crew.member[i].thread, NULL);
    pthread_cond_destroy(&crew.changed);
    pthread_mutex_destroy(&crew.lock);
}
