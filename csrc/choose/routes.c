#include "choose/routes.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/fpenv.h"
#include "base/runtime.h"
#include "base/tuned_file.h"
#include "gpu/device.h"
#include "gpu/link.h"
#include "host/threads_count.h"
#include "transfer/transfer.h"

enum {
    MAX_SIZES = TUNED_NUMBERS,
    MIN_SIZES = 2,
    STEPS_A_SIZE = 8, /* between two measured sizes the fastest route is computed at so many sizes */
    MAX_STEPS = MAX_SIZES * STEPS_A_SIZE,
};

static const char *const memory_name[] = {[MEMORY_ORDINARY] = "ordinary", [MEMORY_PINNED] = "pinned"};
static const char *const class_name[] = {[CLASS_WIDE] = "wide", [CLASS_HALF] = "half"};

const char *const route_name[] = {
    [ROUTE_HOST] = "host",     [ROUTE_TRANSFER] = "transfer", [ROUTE_HYBRID] = "hybrid",
    [ROUTE_DEVICE] = "device", [ROUTE_NONE] = "numpy",
};

const char *const routes_reason_name[] = {
    [ROUTES_ASKED] = "asked",      [ROUTES_NO_CUDA] = "no CUDA",     [ROUTES_FORBIDDEN] = "forbidden",
    [ROUTES_UNTUNED] = "untuned",  [ROUTES_FAILED] = "failed",       [ROUTES_ROUNDING] = "rounding",
    [ROUTES_CALIBRATED] = "tuned", [ROUTES_ESTIMATED] = "estimated",
};

struct step {
    size_t bytes; /* from this size on */
    enum route route;
};

/* The measurements of one kind of memory and one class of component. */
struct curve {
    double seconds[ROUTE_DEVICE][MAX_SIZES]; /* by route; 0 if a route was not measured */
    struct step step[MAX_STEPS];
    int steps;
};

struct calibration {
    int sizes;
    double bytes[MAX_SIZES]; /* of an operand, growing */
    double zero_copy;        /* bytes up to which zero-copy is faster than copies; negative: not in the file */
    struct curve curve[MEMORY_KINDS][CLASSES];
};

/* Without a calibration the host adds all but large page-locked arrays, of which what calls took decides (estimate.h).
 *
 * By the formula of document 004 (docs/ledger.md) the GPU, whose stages overlap, takes as long as its slowest stage:
 * two arrays up the link. The host takes as long as three arrays at its threads' rate. So the GPU is faster only if the
 * host moves less than 1.5 times the link's rate: 83 GB/s beside PCIe 5 x16, which carries 55. 1e8 float32 beside an
 * H200: page-locked arrays took 15.3 ms; 16 threads took 7.74 ms, 8 threads 13.4 and 4 threads 22.3.
 *
 * Ordinary arrays add a stage, in which threads copy them into page-locked memory and the sum back: 17.6 ms with 16
 * threads, 35 with 4, always slower than the same threads' addition. Below HYBRID_MIN there is no careful first trial:
 * the hybrid, which a slow link holds up for no longer than the chunks in flight. */
atomic_size_t routes_from = SIZE_MAX;

/* `lock` guards all variables below but `estimate`, which needs none. `calibration` is read without it, once
 * `calibrated` is set: it never changes again. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct calibration calibration;
static atomic_bool calibrated;
static struct route_estimate estimate;
static atomic_int routes_device; /* that was calibrated, else the first one in use */
static bool in_use, forbidden, forgotten;
static bool failed;
static char failure[sizeof((struct status *)0)->text];

static enum component_class
class_of(enum component component)
{
    return component_is_short_float(component) ? CLASS_HALF : CLASS_WIDE;
}

static double
interpolate(const struct calibration *found, const double *seconds, double bytes)
{
    int i = 1;
    while (i < found->sizes - 1 && bytes > found->bytes[i])
        i++;
    const double x0 = log(found->bytes[i - 1]), x1 = log(found->bytes[i]);
    const double y0 = log(seconds[i - 1]), y1 = log(seconds[i]);
    return exp(y0 + (y1 - y0) * (log(bytes) - x0) / (x1 - x0));
}

static enum route
fastest(const struct calibration *found, const struct curve *curve, double bytes)
{
    enum route best = ROUTE_HOST;
    double least = CLEARLY * interpolate(found, curve->seconds[ROUTE_HOST], bytes);
    for (enum route route = ROUTE_TRANSFER; route < ROUTE_DEVICE; route++) {
        if (curve->seconds[route][0] == 0)
            continue;
        const double seconds = interpolate(found, curve->seconds[route], bytes);
        if (seconds < least) {
            least = seconds;
            best = route;
        }
    }
    return best;
}

/* Below the smallest measured size the host adds. */
static void
find_steps(const struct calibration *found, struct curve *curve)
{
    enum route before = ROUTE_HOST;
    curve->steps = 0;
    for (int i = 0; i < found->sizes; i++)
        for (int part = 0; part < (i + 1 < found->sizes ? STEPS_A_SIZE : 1); part++) {
            const double ratio = part ? found->bytes[i + 1] / found->bytes[i] : 1;
            const double bytes = found->bytes[i] * pow(ratio, (double)part / STEPS_A_SIZE);
            const enum route route = fastest(found, curve, bytes);
            if (route != before)
                curve->step[curve->steps++] = (struct step){(size_t)bytes, route};
            before = route;
        }
}

static enum route
route_at(const struct curve *curve, size_t bytes)
{
    enum route route = ROUTE_HOST;
    for (int i = 0; i < curve->steps && bytes >= curve->step[i].bytes; i++)
        route = curve->step[i].route;
    return route;
}

static bool
take_seconds(struct calibration *found, const char *name, const double *number, int count)
{
    for (int memory = 0; memory < MEMORY_KINDS; memory++)
        for (int components = 0; components < CLASSES; components++)
            for (enum route route = ROUTE_HOST; route < ROUTE_DEVICE; route++) {
                char row[TUNED_NAME];
                snprintf(row, sizeof row, "%s_%s_%s", memory_name[memory], class_name[components], route_name[route]);
                if (strcmp(row, name) != 0)
                    continue;
                for (int i = 0; i < count; i++) {
                    if (!(number[i] > 0))
                        return false;
                    found->curve[memory][components].seconds[route][i] = number[i];
                }
                return count == found->sizes;
            }
    return false;
}

/* tuned_row_function: takes `bytes`, the first row, `zero_copy`, and a row for each memory, class and route. */
static bool
take_row(void *context, const char *name, const double *number, int count)
{
    struct calibration *found = context;
    if (strcmp(name, "bytes") == 0) {
        if (found->sizes || count < MIN_SIZES)
            return false;
        for (int i = 0; i < count; i++) {
            if (!(number[i] > (i ? number[i - 1] : 0)) || number[i] > 0x1p60)
                return false;
            found->bytes[i] = number[i];
        }
        found->sizes = count;
        return true;
    }
    if (strcmp(name, "zero_copy") == 0) {
        found->zero_copy = number[0];
        return count == 1 && number[0] >= 0 && number[0] <= 0x1p60;
    }
    return take_seconds(found, name, number, count);
}

/* Whether the host was measured for every memory and class; other routes are compared with it. */
static bool
complete(const struct calibration *found)
{
    if (!found->sizes)
        return false;
    for (int memory = 0; memory < MEMORY_KINDS; memory++)
        for (int components = 0; components < CLASSES; components++)
            if (found->curve[memory][components].seconds[ROUTE_HOST][0] == 0)
                return false;
    return true;
}

/* The caller holds the lock. */
static bool
read_calibration(const char *key)
{
    memset(&calibration, 0, sizeof calibration);
    calibration.zero_copy = -1;
    if (!tuned_file_read("routes", key, take_row, &calibration) || !complete(&calibration))
        return false;
    for (int memory = 0; memory < MEMORY_KINDS; memory++)
        for (int components = 0; components < CLASSES; components++)
            find_steps(&calibration, &calibration.curve[memory][components]);
    if (calibration.zero_copy >= 0)
        transfer_set_zero_copy((size_t)calibration.zero_copy);
    return true;
}

/* Sets routes_from from the variables above. The caller holds the lock. */
static void
settle(void)
{
    const bool open = in_use && !forbidden && !failed && !forgotten;
    size_t least = open && !atomic_load(&calibrated) ? HYBRID_MIN : SIZE_MAX;
    if (open && atomic_load(&calibrated))
        for (int memory = 0; memory < MEMORY_KINDS; memory++)
            for (int components = 0; components < CLASSES; components++) {
                const struct curve *curve = &calibration.curve[memory][components];
                if (curve->steps && curve->step[0].bytes < least)
                    least = curve->step[0].bytes;
            }
    atomic_store_explicit(&routes_from, least, memory_order_relaxed);
}

/* device_watcher: takes the calibration of the first device that has one; until then the first device is estimated. */
static void
device_in_use(int device, const char *key)
{
    const double link = device_link_rate(device);
    pthread_mutex_lock(&lock);
    if (!in_use) {
        atomic_store(&routes_device, device);
        estimate_set_link(&estimate, link);
    }
    in_use = true;
    if (!atomic_load(&calibrated) && read_calibration(key)) {
        atomic_store(&routes_device, device);
        atomic_store(&calibrated, true);
    }
    settle();
    pthread_mutex_unlock(&lock);
}

void
routes_use_gpu(bool wanted)
{
    pthread_mutex_lock(&lock);
    forbidden = !wanted;
    if (wanted)
        failed = false;
    settle();
    pthread_mutex_unlock(&lock);
}

void
routes_failed(const struct status *status)
{
    if (status->code == STATUS_MEMORY || status->code == STATUS_CAPTURE) /* temporary errors */
        return;
    pthread_mutex_lock(&lock);
    failed = true;
    snprintf(failure, sizeof failure, "%s", status->text);
    settle();
    pthread_mutex_unlock(&lock);
}

/* At exit: no GPU route from here on. */
static void
forget(void)
{
    pthread_mutex_lock(&lock);
    forgotten = true;
    settle();
    pthread_mutex_unlock(&lock);
}

/* Another thread of the parent may have held the lock at the fork, so it is initialised anew. */
static void
in_forked_child(bool used_cuda)
{
    pthread_mutex_init(&lock, NULL);
    forgotten |= used_cuda;
    settle();
}

static void __attribute__((constructor)) register_hooks(void)
{
    static struct runtime_hooks hooks = {.in_forked_child = in_forked_child, .at_exit = forget};
    runtime_register(&hooks);
    device_watch(device_in_use);
}

static size_t
bytes_of(const struct plan *plan)
{
    return plan->n * component_size[plan->component];
}

static enum memory_kind
memory_of(const struct plan *plan)
{
    const size_t bytes = bytes_of(plan);
    const bool pinned = plan->c && bytes && transfer_memory_pinned(plan->c, bytes) &&
                        transfer_memory_pinned(plan->a, bytes) && transfer_memory_pinned(plan->b, bytes);
    return pinned ? MEMORY_PINNED : MEMORY_ORDINARY;
}

static struct estimate_job
job_of(const struct plan *plan)
{
    return (struct estimate_job){bytes_of(plan), class_of(plan->component), threads_available()};
}

void
routes_choose(struct plan *plan)
{
    if (!atomic_load_explicit(&calibrated, memory_order_acquire)) {
        const struct estimate_job job = job_of(plan);
        plan->estimated = memory_of(plan) == MEMORY_PINNED;
        plan->route = plan->estimated ? estimate_choose(&estimate, &job).route : ROUTE_HOST;
    } else {
        const size_t bytes = bytes_of(plan);
        const enum component_class components = class_of(plan->component);
        const enum route ordinary = route_at(&calibration.curve[MEMORY_ORDINARY][components], bytes);
        const enum route pinned = route_at(&calibration.curve[MEMORY_PINNED][components], bytes);
        /* memory_of asks the driver three times, 0.3 us in all: only if the kind of memory matters. */
        plan->route = ordinary != pinned && memory_of(plan) == MEMORY_PINNED ? pinned : ordinary;
    }
    plan->device = atomic_load_explicit(&routes_device, memory_order_relaxed);
    plan->chosen = plan->route != ROUTE_HOST;
}

struct estimate_choice
routes_begin(struct plan *plan)
{
    const struct estimate_job job = job_of(plan);
    const struct estimate_choice choice = estimate_begin(&estimate, &job);
    plan->route = choice.route;
    plan->chosen = plan->route != ROUTE_HOST;
    return choice;
}

void
routes_end(const struct plan *plan, const struct estimate_choice *choice, long long ns)
{
    const struct estimate_job job = job_of(plan);
    estimate_end(&estimate, &job, choice, ns);
}

void
routes_explain(const struct plan *plan, bool asked, struct routes_explanation *explanation)
{
    *explanation = (struct routes_explanation){.memory = MEMORY_ORDINARY};
    pthread_mutex_lock(&lock);
    const bool live = in_use && !forgotten, known = live && atomic_load(&calibrated);
    explanation->reason = asked                                   ? ROUTES_ASKED
                          : !live                                 ? ROUTES_NO_CUDA
                          : forbidden                             ? ROUTES_FORBIDDEN
                          : failed                                ? ROUTES_FAILED
                          : !known && bytes_of(plan) < HYBRID_MIN ? ROUTES_UNTUNED
                          : !fpenv_is_default(fpenv_get())        ? ROUTES_ROUNDING
                          : known                                 ? ROUTES_CALIBRATED
                                                                  : ROUTES_ESTIMATED;
    snprintf(explanation->failure, sizeof explanation->failure, "%s", failure);
    pthread_mutex_unlock(&lock);
    if (live)
        explanation->memory = memory_of(plan);
    const double bytes = (double)bytes_of(plan);
    const struct curve *curve = &calibration.curve[explanation->memory][class_of(plan->component)];
    for (enum route route = ROUTE_HOST; known && bytes > 0 && route < ROUTE_DEVICE; route++)
        if (curve->seconds[route][0] > 0)
            explanation->seconds[route] = interpolate(&calibration, curve->seconds[route], bytes);
    if (explanation->reason != ROUTES_ESTIMATED)
        return;
    if (explanation->memory == MEMORY_ORDINARY) {
        explanation->reason = ROUTES_UNTUNED;
        return;
    }
    const struct estimate_job job = job_of(plan);
    explanation->estimate = estimate_choose(&estimate, &job);
    memcpy(explanation->seconds, explanation->estimate.seconds, sizeof explanation->seconds);
}
