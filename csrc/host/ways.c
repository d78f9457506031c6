#include "host/ways.h"

#include <stdatomic.h>
#include <string.h>

#include "base/relaxed.h"
#include "host/known_time.h"

/* Estimates for as long as no call has shown better. On sixteen cores of Sapphire Rapids a wake held up its caller for
 * 1.2 us after 1 ms and 1.7 after 100, and the worker came after 38 and 60, one in ten after 220. One thread took 43,
 * 95 and 230 ns for a KiB of its sum: in its L2, beyond it, and after 100 ms. */
enum {
    CALL_NS = 1500,
    LATE_NS = 35000,
    CACHED_NS_A_KIB = 60,
    NS_A_KIB = 100,
    RESTED_NS_A_KIB = 220,
};

enum {
    LEAST = 128 << 10, /* bytes: a smaller job is done before a worker comes */
    CLASSES = 12,      /* of sizes, each twice the one before, from LEAST on */
    RETRIED = 32,      /* choices until another way that may be quicker is tried again */
};

/* Another way is taken for this part of the time alone: by an estimate, and where both were measured or some workers
 * take part anyway. Other programs may need the processors, and the program may read the sum from a cache. */
static const double ESTIMATED = 0.75, MEASURED = 0.9;
static const double CLOSE = 1.5; /* times as long: may yet be quicker */

static struct {
    struct known_time call, late;
    struct size_class {
        struct known_time way[WAYS]; /* for the class's least size */
        atomic_uint choices;
    } sizes[2][CLASSES]; /* [rested] */
} known;

static double
value(const struct known_time *time, double estimated)
{
    return known_time_is_any(time) ? known_time_ns(time) : estimated;
}

/* Few samples may all have been disturbed: they make an estimate smaller, not larger. */
static double
time_of(const struct known_time *way, double estimated)
{
    const double ns = value(way, estimated);
    return known_time_is_settled(way) || ns < estimated ? ns : estimated;
}

static size_t
least_of(int number)
{
    return (size_t)LEAST << number;
}

static int
class_of(size_t bytes)
{
    int number = 0;
    while (number < CLASSES - 1 && bytes >= least_of(number + 1))
        number++;
    return number;
}

static double
alone_estimated(const struct ways_job *job)
{
    const bool cached = 3 * job->bytes <= job->l2;
    return (double)job->bytes / 1024 * (job->rested ? RESTED_NS_A_KIB : cached ? CACHED_NS_A_KIB : NS_A_KIB);
}

/* The least time with sleepers, and with how many: the caller wakes one after the other, each comes late, and those
 * who are there share what is left. */
static double
woken_estimated(const struct ways_job *job, double alone, int *sleepers)
{
    const double call = value(&known.call, CALL_NS), late = value(&known.late, LATE_NS);
    double least = 0;
    for (int k = 1; k <= job->asleep; k++) {
        const double ns = (alone + k * (call + late) + call * k * (k + 1) / 2) / (1 + job->awake + k);
        if (k > 1 && ns >= least)
            break;
        least = ns;
        *sleepers = k;
    }
    return least;
}

/* A way that is not known, or was not tried for long, and may be quicker than `best`. */
static enum way
worth_a_try(struct size_class *class, const double ns[WAYS], enum way best)
{
    const unsigned choices = relaxed_get(&class->choices) + 1;
    relaxed_set(&class->choices, choices);
    if (!known_time_is_settled(&class->way[best]))
        return best;
    for (enum way way = 0; way < WAYS; way++)
        if (ns[way] > 0 && ns[way] <= CLOSE * ns[best] &&
            (!known_time_is_settled(&class->way[way]) || choices % RETRIED == way))
            return way;
    return best;
}

enum way
ways_choose(const struct ways_job *job, int *sleepers)
{
    const enum way woken = job->stream_first ? WAY_WOKEN_STREAMING : WAY_WOKEN,
                   other = job->stream_first ? WAY_WOKEN : WAY_WOKEN_STREAMING;
    const enum way order[WAYS] = {WAY_ALONE, WAY_STREAMING, woken, other};
    *sleepers = 0;
    if (job->bytes < LEAST)
        return WAY_ALONE;
    struct size_class *class = &known.sizes[job->rested][class_of(job->bytes)];
    const double scale = (double)job->bytes / (double)least_of(class_of(job->bytes));
    double ns[WAYS] = {0}; /* 0: not possible */
    ns[WAY_ALONE] = scale * time_of(&class->way[WAY_ALONE], alone_estimated(job) / scale);
    if (job->asleep > 0)
        ns[woken] = woken_estimated(job, ns[WAY_ALONE], sleepers);
    if (job->awake > 0)
        return ns[woken] > 0 && ns[woken] <= MEASURED * ns[WAY_ALONE] / (1 + job->awake) ? woken : WAY_ALONE;

    if (job->streams)
        ns[WAY_STREAMING] = scale * time_of(&class->way[WAY_STREAMING], ns[WAY_ALONE] / scale);
    if (ns[woken] > 0 && job->woken_stream)
        ns[other] = scale * time_of(&class->way[other], ns[woken] / scale);
    if (ns[woken] > 0)
        ns[woken] = scale * time_of(&class->way[woken], ns[woken] / scale);
    enum way best = WAY_ALONE;
    for (int i = 1; i < WAYS; i++) {
        const enum way way = order[i];
        const bool measured = known_time_is_settled(&class->way[way]) && known_time_is_settled(&class->way[best]);
        if (ns[way] > 0 && ns[way] <= (measured ? MEASURED : ESTIMATED) * ns[best])
            best = way;
    }
    return worth_a_try(class, ns, best);
}

void
ways_note_job(const struct ways_job *job, enum way way, long long ns)
{
    if (job->bytes < LEAST)
        return;
    const int number = class_of(job->bytes);
    known_time_note(&known.sizes[job->rested][number].way[way],
                    (double)ns * (double)least_of(number) / (double)job->bytes);
}

void
ways_note_calls(int wakes, long long ns)
{
    known_time_note(&known.call, (double)ns / wakes);
}

void
ways_note_late(long long ns)
{
    known_time_note(&known.late, (double)ns);
}

void
ways_forget(void)
{
    memset(&known, 0, sizeof known);
}
