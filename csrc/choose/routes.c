#include "choose/routes.h"

#include <pthread.h>
#include <stdio.h>

#include "base/fpenv.h"
#include "base/runtime.h"
#include "gpu/device.h"
#include "gpu/link.h"
#include "host/threads.h"

const char *const route_name[] = {
    [ROUTE_HOST] = "host",     [ROUTE_TRANSFER] = "transfer", [ROUTE_HYBRID] = "hybrid",
    [ROUTE_DEVICE] = "device", [ROUTE_NONE] = "numpy",
};

/* The host takes as long as three arrays at its threads' rate: 1e8 float32 beside an H200 took 22.3 ms with 4 threads,
 * 13.4 with 8 and 7.74 with 16; these constants say 25, 12.5 and 7.74. */
static const double ONE_THREAD = 12e9, ALL_THREADS = 155e9; /* bytes a second; the second at most, with any number */

/* By the formula of document 004 (docs/ledger.md says which text that is) the GPU, whose stages overlap, takes as long
 * as its slowest stage: two arrays up the link. PCIe 5 x16 carries 63 GB/s in theory and 55 in fact: 14.5 ms for the
 * same arrays, which took 15.3. Where the system does not tell, PCIe 4 x16: most servers' GPUs since 2020 have as much
 * or twice that. The processor's and the GPU's rates add up to the hybrid's, so that the hybrid is always ahead of the
 * GPU alone.
 *
 * Ordinary arrays add a stage, in which threads copy them into page-locked memory and the sum back: 17.6 ms with 16
 * threads, 35 with 4, always slower than the same threads' addition. */
static const double LINK_SHARE = 55.0 / 63, ASSUMED = 31.5e9;

/* The hybrid must take less than this share of the host's time: the host route leaves link and GPU to other work. */
static const double CLEARLY = 0.97;

atomic_uint gpu_barred = GPU_UNUSED;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the variables below, but for reads of a set `gpu` */
static struct {
    int device;
    double link; /* bytes a second in one direction, in theory; 0: not known */
} gpu;           /* the first one in use; set before GPU_UNUSED is cleared, once */
static char failure[sizeof((struct status *)0)->text];

/* device_hook. */
static void
note_device(int device)
{
    const double link = device_link_rate(device);
    pthread_mutex_lock(&lock);
    if (atomic_load(&gpu_barred) & GPU_UNUSED) {
        gpu.device = device;
        gpu.link = link;
        atomic_fetch_and(&gpu_barred, ~(unsigned)GPU_UNUSED);
    }
    pthread_mutex_unlock(&lock);
}

void
routes_use_gpu(bool wanted)
{
    if (wanted)
        atomic_fetch_and(&gpu_barred, ~(unsigned)(GPU_FORBIDDEN | GPU_FAILED));
    else
        atomic_fetch_or(&gpu_barred, GPU_FORBIDDEN);
}

void
routes_record_failure(const struct status *status)
{
    if (status->code == STATUS_MEMORY || status->code == STATUS_CAPTURE) /* temporary errors */
        return;
    pthread_mutex_lock(&lock);
    snprintf(failure, sizeof failure, "%s", status->text);
    pthread_mutex_unlock(&lock);
    atomic_fetch_or(&gpu_barred, GPU_FAILED);
}

static void
leave_gpu(void)
{
    atomic_fetch_or(&gpu_barred, GPU_LEFT);
}

/* Another thread of the parent may have had the lock at the fork, so it is initialised anew. */
static void
in_forked_child(bool used_cuda)
{
    pthread_mutex_init(&lock, NULL);
    if (used_cuda)
        leave_gpu();
}

static void __attribute__((constructor)) register_hooks(void)
{
    static struct runtime_hooks hooks = {.in_forked_child = in_forked_child, .at_exit = leave_gpu};
    runtime_register(&hooks);
    device_on_first_use(note_device);
}

static size_t
bytes_of(const struct plan *plan)
{
    return plan->n * component_size[plan->component];
}

static bool
is_pinned(const struct plan *plan)
{
    const size_t bytes = bytes_of(plan);
    return plan->c && bytes && transfer_memory_pinned(plan->c, bytes) && transfer_memory_pinned(plan->a, bytes) &&
           transfer_memory_pinned(plan->b, bytes);
}

bool
routes_predict(size_t bytes, int threads, double link, double seconds[ROUTE_DEVICE])
{
    const double host = threads * ONE_THREAD < ALL_THREADS ? threads * ONE_THREAD : ALL_THREADS;
    seconds[ROUTE_HOST] = 3 * (double)bytes / host;
    seconds[ROUTE_TRANSFER] = 2 * (double)bytes / (LINK_SHARE * (link > 0 ? link : ASSUMED));
    seconds[ROUTE_HYBRID] = 1 / (1 / seconds[ROUTE_HOST] + 1 / seconds[ROUTE_TRANSFER]);
    return seconds[ROUTE_HYBRID] < CLEARLY * seconds[ROUTE_HOST];
}

void
choose_open_route(struct plan *plan)
{
    double seconds[ROUTE_DEVICE];
    if (!routes_predict(bytes_of(plan), threads_available(), gpu.link, seconds) || !is_pinned(plan))
        return;
    plan->route = ROUTE_HYBRID;
    plan->device = gpu.device;
    plan->chosen = true;
}

void
routes_explain(const struct plan *plan, bool asked, struct routes_explanation *found)
{
    const unsigned barred = atomic_load(&gpu_barred);
    const bool in_use = !(barred & (GPU_UNUSED | GPU_LEFT));
    *found = (struct routes_explanation){.pinned = in_use && is_pinned(plan)};
    found->reason = asked                                           ? ROUTES_ASKED
                    : !in_use                                       ? ROUTES_NO_CUDA
                    : barred & GPU_FORBIDDEN                        ? ROUTES_FORBIDDEN
                    : barred & GPU_FAILED                           ? ROUTES_FAILED
                    : bytes_of(plan) < HYBRID_MIN || !found->pinned ? ROUTES_SMALL_OR_ORDINARY
                    : !fpenv_is_default(fpenv_get())                ? ROUTES_ROUNDING
                                                                    : ROUTES_PREDICTED;
    if (found->reason == ROUTES_PREDICTED)
        routes_predict(bytes_of(plan), threads_available(), gpu.link, found->seconds);
    if (found->reason == ROUTES_FAILED) {
        pthread_mutex_lock(&lock);
        snprintf(found->failure, sizeof found->failure, "%s", failure);
        pthread_mutex_unlock(&lock);
    }
}
