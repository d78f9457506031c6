#include "choose/estimate.h"

#include <limits.h>
#include <math.h>

#include "base/min_max.h"
#include "base/relaxed.h"
#include "transfer/transfer.h"

#define MIB 0x1p20

/* The formula's two stages that a link decides, of which the longer counts: two arrays up, one of them beside the one
 * that comes down. PCIe 5 x16 carries 63 GB/s in theory, 55 in one direction and 51 in each of both. The kernel is no
 * stage: a GPU's memory is ten times as fast as its link. */
static const double ALONE = 55.0 / 63, BESIDE = 51.0 / 63;

/* Where the system does not tell, PCIe 4 x16: most servers' GPUs since 2020 have as much or twice that. */
static const double ASSUMED = 31.5e9;

/* A route is tried if it promises to take less than this part of the host's time. */
static const double AHEAD = 1 / 1.3;

/* All that trials take longer than the host stays below this part of the time of all calls, so that these are never
 * slower by more than 5 %. START is what a first trial may take longer, which makes streams and device memory. */
static const double MOST_LOST = 0.03, START = 5e6;

/* Until a route is timed: how much slower than its attributes a link may be, and how far from them is too far to try.
 */
static const double SLOWER = 16, FAR = 2;

static const double IN_FLIGHT = 8; /* MiB of an operand that a hybrid has on the link at most: two chunks */

/* How far a route that was measured may be behind the best and still be tried again. */
static const double CLOSE = 4;

enum {
    TRIALS = 3, /* samples after which a time is known: the first has the start in it */
    PART = 4,   /* a longer sample moves a time by this part of the difference, */
    MOST = 16,  /* and by this part of the time at most: what disturbs a call makes it longer */
    /* A known route is tried again after half as many calls as the best has had, so at ever greater distances. */
    LEAST_WAIT = 8,
    MOST_WAIT = 1 << 10,
    MOST_WAIT_OF_HOST = 1 << 7, /* which is tried more often: it must never be faster by much */
};

static bool
is_known(const struct route_time *time)
{
    return relaxed_get(&time->samples) >= TRIALS;
}

static void
note(struct route_time *time, double ns, unsigned call)
{
    const unsigned sample = ns < 1 ? 1 : ns < UINT_MAX ? (unsigned)ns : UINT_MAX, samples = relaxed_get(&time->samples);
    const unsigned now = relaxed_get(&time->ns);
    relaxed_set(&time->ns,
                samples == 0 || sample < now ? sample : now + (unsigned)smaller((sample - now) / PART, now / MOST));
    relaxed_set(&time->at, call);
    if (samples < 2 * MOST_WAIT)
        relaxed_set(&time->samples, samples + 1);
}

static int
size_class(size_t bytes)
{
    int number = 0;
    while (number < ESTIMATE_SIZES - 1 && bytes / 2 >= (size_t)HYBRID_MIN << number)
        number++;
    return number;
}

static double
link_ns(double bytes_a_second)
{
    return 1e9 * MIB / bytes_a_second * (1 / ALONE + 1 / BESIDE);
}

void
estimate_set_link(struct route_estimate *estimate, double bytes_a_second)
{
    relaxed_set(&estimate->link, bytes_a_second > 0 ? (unsigned)fmin(link_ns(bytes_a_second), UINT_MAX) : 0);
}

/* What the transfer takes for a MiB: of this size, else of any, else by the link's attributes. */
static double
transfer_ns(const struct route_estimate *estimate, const struct size_estimate *size, enum estimate_link *from)
{
    const struct route_time *const measured[] = {&size->route[ROUTE_TRANSFER], &estimate->transfer};
    *from = LINK_MEASURED;
    for (int i = 0; i < 2; i++)
        if (is_known(measured[i]))
            return relaxed_get(&measured[i]->ns);
    *from = relaxed_get(&estimate->link) ? LINK_ATTRIBUTES : LINK_ASSUMED;
    return *from == LINK_ATTRIBUTES ? relaxed_get(&estimate->link) : link_ns(ASSUMED);
}

/* What is known of the additions of one size; ns for a MiB by route, 0: unknown. */
struct view {
    const struct route_estimate *estimate;
    const struct size_estimate *size;
    double ns[ROUTE_DEVICE];
    double mib;
    enum estimate_link link;
};

/* The processor's and the GPU's rates add up to the hybrid's. */
static struct view
view_of(const struct route_estimate *estimate, const struct estimate_job *job)
{
    const struct size_estimate *size = &estimate->size[job->components][size_class(job->bytes)];
    struct view view = {.estimate = estimate, .size = size, .mib = (double)job->bytes / MIB};
    const double transfer = transfer_ns(estimate, size, &view.link);
    view.ns[ROUTE_TRANSFER] = transfer;
    if (atomic_load_explicit(&estimate->threads, memory_order_relaxed) != job->threads ||
        !relaxed_get(&size->route[ROUTE_HOST].samples))
        return view;
    const double host = relaxed_get(&size->route[ROUTE_HOST].ns);
    view.ns[ROUTE_HOST] = host;
    view.ns[ROUTE_HYBRID] = is_known(&size->route[ROUTE_HYBRID]) ? relaxed_get(&size->route[ROUTE_HYBRID].ns)
                                                                 : 1 / (1 / host + 1 / transfer);
    return view;
}

/* What a route may take for a MiB. Before it is tried, the hybrid is no slower than the host, or than the chunks that
 * are in flight: it leaves to the host what the GPU would bring back too late. So it is tried first, and what it takes
 * tells how much of the work the GPU does. The transfer takes no longer than the GPU would for all of it; it is not
 * tried where that is far from the link's attributes. */
static double
risk(const struct view *view, enum route route)
{
    const double host = view->ns[ROUTE_HOST], hybrid = view->ns[ROUTE_HYBRID], transfer = view->ns[ROUTE_TRANSFER];
    if (relaxed_get(&view->size->route[route].samples))
        return relaxed_get(&view->size->route[route].ns);
    if (route == ROUTE_HYBRID)
        return fmax(host, IN_FLIGHT * SLOWER * transfer / view->mib);
    const bool tells = is_known(&view->size->route[ROUTE_HYBRID]) && hybrid < host;
    const double alone = tells ? 1 / (1 / hybrid - 1 / host) : INFINITY;
    return alone <= FAR * transfer ? alone : INFINITY;
}

static bool
can_afford(const struct view *view, enum route route)
{
    const struct route_estimate *estimate = view->estimate;
    const double start = atomic_load_explicit(&estimate->started, memory_order_relaxed) ? 0 : START;
    const double cost = start + view->mib * fmax(risk(view, route) - view->ns[ROUTE_HOST], 0);
    return route == ROUTE_HOST || cost + (double)atomic_load_explicit(&estimate->lost, memory_order_relaxed) <=
                                      MOST_LOST * (double)atomic_load_explicit(&estimate->host, memory_order_relaxed);
}

static enum route
best_known(const struct view *view)
{
    enum route best = ROUTE_HOST;
    double least = CLEARLY * view->ns[ROUTE_HOST];
    for (enum route route = ROUTE_TRANSFER; route < ROUTE_DEVICE; route++)
        if (is_known(&view->size->route[route]) && view->ns[route] < least) {
            least = view->ns[route];
            best = route;
        }
    return best;
}

/* Whether a route that is not the best known may be: it promises so and has not been tried often enough, or it was,
 * long ago. */
static bool
is_worth_a_try(const struct view *view, enum route route, enum route best)
{
    const struct route_time *time = &view->size->route[route];
    if (!is_known(time))
        return view->ns[route] <= AHEAD * view->ns[ROUTE_HOST] && view->ns[route] < CLEARLY * view->ns[best] &&
               isfinite(risk(view, route));
    const size_t most = route == ROUTE_HOST ? MOST_WAIT_OF_HOST : MOST_WAIT;
    const size_t wait = larger(LEAST_WAIT, smaller(relaxed_get(&view->size->route[best].samples) / 2, most));
    return route != best && relaxed_get(&view->size->calls) - relaxed_get(&time->at) >= wait &&
           (route == ROUTE_HOST || view->ns[route] <= CLOSE * view->ns[best]);
}

struct estimate_choice
estimate_choose(const struct route_estimate *estimate, const struct estimate_job *job)
{
    static const enum route tried[] = {ROUTE_HYBRID, ROUTE_TRANSFER, ROUTE_HOST};
    const struct view view = view_of(estimate, job);
    struct estimate_choice choice = {.link = view.link, .stage = ESTIMATE_LEARNING};
    for (enum route route = ROUTE_HOST; route < ROUTE_DEVICE; route++)
        choice.seconds[route] = 1e-9 * view.mib * view.ns[route];
    if (!view.ns[ROUTE_HOST] || !is_known(&view.size->route[ROUTE_HOST]))
        return choice;

    choice.route = choice.otherwise = best_known(&view);
    const bool measured = is_known(&view.size->route[ROUTE_HYBRID]);
    choice.stage = measured ? ESTIMATE_MEASURED : ESTIMATE_BEHIND;
    for (int i = 0; i < ROUTE_DEVICE; i++) {
        if (!is_worth_a_try(&view, tried[i], choice.otherwise))
            continue;
        if (can_afford(&view, tried[i])) {
            choice.route = tried[i];
            choice.stage = ESTIMATE_TRIAL;
            break;
        }
        choice.stage = measured ? ESTIMATE_MEASURED : ESTIMATE_WAITING;
    }
    return choice;
}

struct estimate_choice
estimate_begin(struct route_estimate *estimate, const struct estimate_job *job)
{
    struct estimate_choice choice = estimate_choose(estimate, job);
    if (choice.stage == ESTIMATE_TRIAL && atomic_exchange_explicit(&estimate->trying, true, memory_order_relaxed)) {
        choice.route = choice.otherwise;
        choice.stage = ESTIMATE_WAITING;
    }
    return choice;
}

/* With another number of threads all times are others, but for the transfer's. */
static void
forget_times(struct route_estimate *estimate)
{
    for (int components = 0; components < CLASSES; components++)
        for (int i = 0; i < ESTIMATE_SIZES; i++)
            for (enum route route = ROUTE_HOST; route < ROUTE_DEVICE; route++)
                relaxed_set(&estimate->size[components][i].route[route].samples, 0);
}

void
estimate_end(struct route_estimate *estimate, const struct estimate_job *job, const struct estimate_choice *choice,
             long long ns)
{
    if (atomic_exchange_explicit(&estimate->threads, job->threads, memory_order_relaxed) != job->threads)
        forget_times(estimate);
    struct size_estimate *size = &estimate->size[job->components][size_class(job->bytes)];
    const unsigned call = atomic_fetch_add_explicit(&size->calls, 1, memory_order_relaxed) + 1;
    const double mib = (double)job->bytes / MIB;
    note(&size->route[choice->route], (double)ns / mib, call);
    if (choice->route == ROUTE_TRANSFER)
        note(&estimate->transfer, (double)ns / mib, 0);

    const unsigned long long taken = (unsigned long long)ns;
    unsigned long long host = taken;
    if (choice->route != ROUTE_HOST) {
        host = (unsigned long long)(1e9 * choice->seconds[ROUTE_HOST]);
        atomic_store_explicit(&estimate->started, true, memory_order_relaxed);
        if (taken > host)
            atomic_fetch_add_explicit(&estimate->lost, taken - host, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&estimate->host, host, memory_order_relaxed);
    if (choice->stage == ESTIMATE_TRIAL)
        atomic_store_explicit(&estimate->trying, false, memory_order_relaxed);
}
