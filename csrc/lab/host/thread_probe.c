/* How long idle threads of the host take to wake and answer. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "base/now.h"
#include "lab/base/probes.h"

enum {
    ROUNDS = 5,
    IDLE = 2000000, /* ns before a round: threads that spin for work have gone to sleep */
    MAX_THREADS = 256,
};

struct thread_probe {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned turn; /* counts the rounds */
    int members;   /* the threads that answer in this round, the caller among them */
    bool ends;
    atomic_int silent; /* members that have not answered yet */
    int started;       /* threads beside the caller */
    struct member {
        struct thread_probe *thread_probe;
        int number;
        pthread_t thread;
    } member[MAX_THREADS];
};

static void *
member_main(void *argument)
{
    const struct member *member = argument;
    struct thread_probe *thread_probe = member->thread_probe;
    bool ends = false;
    for (unsigned seen = 0; !ends;) {
        pthread_mutex_lock(&thread_probe->lock);
        while (thread_probe->turn == seen)
            pthread_cond_wait(&thread_probe->changed, &thread_probe->lock);
        seen = thread_probe->turn;
        ends = thread_probe->ends;
        const bool answers = member->number < thread_probe->members;
        pthread_mutex_unlock(&thread_probe->lock);
        if (answers)
            atomic_fetch_sub(&thread_probe->silent, 1);
    }
    return NULL;
}

static void
wake(struct thread_probe *thread_probe, int members, bool ends)
{
    pthread_mutex_lock(&thread_probe->lock);
    thread_probe->turn++;
    thread_probe->members = members;
    thread_probe->ends = ends;
    atomic_store(&thread_probe->silent, members - 1);
    pthread_cond_broadcast(&thread_probe->changed);
    pthread_mutex_unlock(&thread_probe->lock);
}

/* The median of all rounds but the first, each after a rest. */
static double
seconds_until_awake(struct thread_probe *thread_probe, int members)
{
    static const struct timespec idle = {.tv_nsec = IDLE};
    double each[ROUNDS];
    for (int round = -1; round < ROUNDS; round++) {
        nanosleep(&idle, NULL);
        const double begin = now_seconds();
        wake(thread_probe, members, false);
        while (atomic_load(&thread_probe->silent) > 0)
            sched_yield();
        each[round < 0 ? 0 : round] = now_seconds() - begin;
    }
    return median(each, ROUNDS);
}

static void
start_others(struct thread_probe *thread_probe, int others)
{
    for (; thread_probe->started < others; thread_probe->started++) {
        struct member *member = &thread_probe->member[thread_probe->started];
        *member = (struct member){.thread_probe = thread_probe, .number = thread_probe->started + 1};
        if (pthread_create(&member->thread, NULL, member_main, member) != 0)
            break;
    }
}

void
limits_thread_probe(int threads, struct thread_probe_limits *limits)
{
    struct thread_probe thread_probe = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    start_others(&thread_probe, (threads < MAX_THREADS ? threads : MAX_THREADS) - 1);
    limits->wake_one = seconds_until_awake(&thread_probe, thread_probe.started ? 2 : 1);
    limits->wake = seconds_until_awake(&thread_probe, thread_probe.started + 1);
    wake(&thread_probe, 1, true);
    for (int i = 0; i < thread_probe.started; i++)
        pthread_join(thread_probe.member[i].thread, NULL);
    pthread_cond_destroy(&thread_probe.changed);
    pthread_mutex_destroy(&thread_probe.lock);
}
