#include "choose/plan.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/fpenv.h"
#include "base/runtime.h"
#include "gpu/add.h"
#include "gpu/device.h"
#include "gpu/stream.h"
#include "host/add.h"
#include "host/strided.h"
#include "transfer/transfer.h"

const char *const route_name[] = {
    [ROUTE_HOST] = "host",     [ROUTE_TRANSFER] = "transfer", [ROUTE_HYBRID] = "hybrid",
    [ROUTE_DEVICE] = "device", [ROUTE_NONE] = "numpy",
};

/* --- Whether the GPU may take part. */

/* Why the GPU may take no part in additions without device=; 0: it may. */
enum {
    GPU_UNUSED = 1,    /* this process has not used CUDA through vecadd */
    GPU_FORBIDDEN = 2, /* use_gpu(False) */
    GPU_FAILED = 4,    /* in an earlier addition, and the host added instead */
    GPU_LEFT = 8,      /* at exit, and in a child of a process that had used CUDA */
};
static atomic_uint gpu_barred = GPU_UNUSED;

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

/* A chosen GPU route failed and the host adds instead. From then on the host adds all, unless memory was short or a
 * stream was capturing. */
static void
record_failure(const struct status *status)
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

/* --- The formula. */

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

bool
routes_predict(size_t bytes, int threads, double link, double seconds[ROUTE_DEVICE])
{
    const double host = threads * ONE_THREAD < ALL_THREADS ? threads * ONE_THREAD : ALL_THREADS;
    seconds[ROUTE_HOST] = 3 * (double)bytes / host;
    seconds[ROUTE_TRANSFER] = 2 * (double)bytes / (LINK_SHARE * (link > 0 ? link : ASSUMED));
    seconds[ROUTE_HYBRID] = 1 / (1 / seconds[ROUTE_HOST] + 1 / seconds[ROUTE_TRANSFER]);
    return seconds[ROUTE_HYBRID] < CLEARLY * seconds[ROUTE_HOST];
}

static bool
is_pinned(const struct plan *plan)
{
    const size_t bytes = plan_bytes(plan);
    return plan->c && bytes && transfer_memory_pinned(plan->c, bytes) && transfer_memory_pinned(plan->a, bytes) &&
           transfer_memory_pinned(plan->b, bytes);
}

static enum routes_reason
reason_for(const struct plan *plan, struct routes_explanation *found)
{
    const unsigned barred = atomic_load_explicit(&gpu_barred, memory_order_acquire);
    if (barred & (GPU_UNUSED | GPU_LEFT))
        return ROUTES_NO_CUDA;
    found->pinned = is_pinned(plan);
    if (barred & GPU_FORBIDDEN)
        return ROUTES_FORBIDDEN;
    if (barred & GPU_FAILED)
        return ROUTES_FAILED;
    if (plan_bytes(plan) < HYBRID_MIN || !found->pinned)
        return ROUTES_SMALL_OR_ORDINARY;
    if (!fpenv_is_default(fpenv_get()))
        return ROUTES_ROUNDING;
    found->hybrid = routes_predict(plan_bytes(plan), threads_available(), gpu.link, found->seconds);
    return ROUTES_PREDICTED;
}

void
routes_explain(const struct plan *plan, bool asked, struct routes_explanation *found)
{
    *found = (struct routes_explanation){0};
    found->reason = reason_for(plan, found);
    if (asked)
        *found = (struct routes_explanation){.reason = ROUTES_ASKED, .pinned = found->pinned};
    if (found->reason == ROUTES_FAILED) {
        pthread_mutex_lock(&lock);
        snprintf(found->failure, sizeof found->failure, "%s", failure);
        pthread_mutex_unlock(&lock);
    }
}

/* --- Plans. */

/* A new sum, whose c is NULL, will be ordinary memory. */
static bool
is_ahead_with_gpu(const struct plan *plan)
{
    struct routes_explanation found;
    return plan_bytes(plan) >= HYBRID_MIN && reason_for(plan, &found) == ROUTES_PREDICTED && found.hybrid;
}

/* The GPU rounds to nearest and flushes no subnormals; under any other floating-point setting the host adds. */
static void
choose_route(struct plan *plan, const struct plan_request *request)
{
    plan->route = ROUTE_HOST;
    if (request->open && is_ahead_with_gpu(plan)) {
        plan->route = ROUTE_HYBRID;
        plan->device = gpu.device;
        plan->chosen = true;
    } else if (request->on_device && fpenv_is_default(fpenv_get())) {
        plan->route = ROUTE_TRANSFER;
        plan->device = request->device;
    } else if (request->hybrid && plan_bytes(plan) >= HYBRID_MIN && fpenv_is_default(fpenv_get()))
        plan->route = ROUTE_HYBRID;
}

/* Decides how the host adds its part. `c`: where it writes the sum, now and once; else NULL. */
static int
schedule_run(struct plan *plan, const void *c, const struct plan_request *request, struct status *status)
{
    if (plan->route == ROUTE_TRANSFER)
        return 0;
    return host_schedule(&plan->schedule,
                         &(struct host_request){.component = plan->component,
                                                .n = plan->n,
                                                .moved = 3 * plan_bytes(plan),
                                                .unit = 1,
                                                .in_place = plan->c == plan->a || plan->c == plan->b,
                                                .c = c,
                                                .below = request->below,
                                                .threads = request->threads},
                         status);
}

int
plan_new_sum(struct plan *plan, void *c, struct status *status)
{
    static const struct plan_request none;
    plan->c = c;
    return plan->strided ? 0 : schedule_run(plan, c, &none, status);
}

int
plan_check_device(const struct plan *plan, struct status *status)
{
    int device = plan->device;
    return plan->route == ROUTE_TRANSFER || plan->route == ROUTE_HYBRID ? device_find(&device, status) : 0;
}

void
plan_join(struct plan *plan, void *stream)
{
    if (stream != plan->stream && !stream_is_among(plan->join, (size_t)plan->joins, stream))
        plan->join[plan->joins++] = stream;
}

struct stream_leader
plan_leader(const struct operand *const operands[3])
{
    struct stream_leader leader = {0};
    for (int i = 0; i < 3; i++)
        if (operands[i])
            stream_leader_note(&leader, operands[i]);
    return leader;
}

/* The address of the first element; NULL for a number. */
static const void *
address_of(const struct operand *operand)
{
    return operand->place == PLACE_NUMBER ? NULL : operand->data;
}

/* The first operand that has memory; it decides where numbers and a new sum are. */
static const struct operand *
first_in_memory(const struct operand *const operands[3])
{
    return operands[0]->place == PLACE_NUMBER ? operands[1] : operands[0];
}

static int
plan_device(struct plan *plan, const struct operand *const operands[3], const struct plan_request *request,
            struct status *status)
{
    static const char *const names[] = {"a", "b", "out"};
    plan->route = ROUTE_DEVICE;
    plan->device = first_in_memory(operands)->device;
    for (int i = 0; i < 3; i++)
        if (operands[i] && operands[i]->place != PLACE_NUMBER && operands[i]->device != plan->device)
            return status_set(
                status, STATUS_VALUE, "%s is on cuda:%d and %s on cuda:%d; copy one to the other's device",
                names[first_in_memory(operands) != operands[0]], plan->device, names[i], operands[i]->device);
    plan->stream = request->has_stream ? request->stream : plan_leader(operands).stream;
    if (request->on_device && request->device >= 0 && request->device != plan->device)
        return status_set(status, STATUS_VALUE, "device is cuda:%d, but the operands are on cuda:%d; leave device out",
                          request->device, plan->device);
    for (int i = 0; i < 3; i++)
        if (operands[i] && operands[i]->has_stream)
            plan_join(plan, operands[i]->stream);
    return request->has_stream ? 0 : stream_lead(plan->device, &plan->stream, plan->join, (size_t)plan->joins, status);
}

/* Plans one contiguous run of components if it can, else any layout. A sum without elements gets only component and n.
 */
static void
take_layout(struct plan *plan, const struct addition *addition)
{
    const struct dtype_row *row = &dtype_table[addition->dtype];
    plan->component = row->component;
    plan->n = addition->size;
    if (addition->size == 0)
        return;
    if (!addition_is_run(addition, plan->a, plan->b, plan->c)) {
        plan->strided = &addition->elements;
        return;
    }
    const ssize_t *offset = addition->elements.layout.offset;
    plan->n *= row->components;
    plan->a = (const char *)plan->a + offset[0];
    plan->b = (const char *)plan->b + offset[1];
    if (plan->c)
        plan->c = (char *)plan->c + offset[LAYOUT_SUM];
}

/* Whether out shares memory with an input, except for the identical view in the same dtype. */
static bool
out_overlaps(const struct plan *plan, const struct strided *add)
{
    const enum dtype out = add->dtype[LAYOUT_SUM];
    return (plan->a == plan->c && add->dtype[0] != out) || (plan->b == plan->c && add->dtype[1] != out) ||
           strided_overlaps(add, plan->a, plan->b, plan->c);
}

/* Whether a new sum is in Fortran order: the host makes new sums in C or Fortran order only. */
static bool
is_fortran(const struct addition *addition)
{
    ssize_t step = (ssize_t)dtype_table[addition->dtype].itemsize;
    for (int i = 0; i < addition->ndim; step *= addition->shape[i++])
        if (addition->strides[i] != step)
            return false;
    return true;
}

/* The reason to leave the addition to NumPy; NULL if host_strided_add can run it. */
static const char *
why_not_strided(const struct plan *plan, const struct addition *addition)
{
    const struct strided *add = &addition->elements;
    const bool converts = add->dtype[0] != add->sum || add->dtype[1] != add->sum;
    if (addition->ndim == 0)
        return "the operands have no dimension";
    if (addition->size < (converts ? PLAN_CONVERTED_MIN : PLAN_STRIDED_MIN) / dtype_table[add->sum].itemsize)
        return "numpy.add is as fast for so few elements";
    if (add->dtype[LAYOUT_SUM] != add->sum)
        return "out is of another dtype than the sum";
    if (plan->c && out_overlaps(plan, add))
        return "out overlaps an input in part";
    if (!plan->c && addition->ordered && !is_fortran(addition))
        return "the sum has an order of memory that only numpy.add makes";
    if (!host_strided_possible(add, plan->a, plan->b, plan->c))
        return "its rows are short, misaligned, or of dtypes that vecadd does not convert";
    return NULL;
}

static int
plan_host_layout(struct plan *plan, const struct addition *addition, const struct plan_request *request,
                 struct status *status)
{
    plan->why = why_not_strided(plan, addition);
    plan->route = plan->why ? ROUTE_NONE : ROUTE_HOST;
    if (plan->why)
        return 0;
    plan->component = dtype_table[addition->dtype].component;
    plan->n = addition->size;
    plan->strided = &addition->elements;
    struct host_request host = host_strided_request(plan);
    host.below = request->below;
    host.threads = request->threads;
    return host_schedule(&plan->schedule, &host, status);
}

int
plan_host_run(struct plan *plan, const struct batch_add *add, const struct plan_request *request, struct status *status)
{
    *plan =
        (struct plan){.component = add->component, .n = add->n, .a = add->a, .b = add->b, .c = add->c, .device = -1};
    choose_route(plan, request);
    return plan->c ? schedule_run(plan, request->repeats ? NULL : plan->c, request, status) : 0;
}

int
plan_make(struct plan *plan, const struct addition *addition, const struct operand *const operands[3],
          const struct plan_request *request, struct status *status)
{
    *plan = (struct plan){.device = -1};
    plan->a = operands[0]->data;
    plan->b = operands[1]->data;
    plan->c = operands[2] ? operands[2]->data : NULL;
    if (!addition) {
        const struct dtype_row *dtype = &dtype_table[operands[0]->dtype];
        plan->component = dtype->component;
        plan->n = operands[0]->size * dtype->components;
        return plan_device(plan, operands, request, status);
    }
    plan->a = address_of(operands[0]);
    plan->b = address_of(operands[1]);
    if (first_in_memory(operands)->place != PLACE_DEVICE)
        return plan_host_layout(plan, addition, request, status);
    take_layout(plan, addition);
    return plan_device(plan, operands, request, status);
}

static unsigned
run_on_host(const struct plan *plan)
{
    if (plan->strided)
        return host_strided_add(plan);
    return host_add(&plan->schedule, plan->component, plan->a, plan->b, plan->c, plan->n);
}

/* When plan_make chose the GPU for speed and the GPU fails, the caller did nothing wrong: the host adds instead, unless
 * an operand is already overwritten. The host also adds if a kept plan was made under another rounding mode, or before
 * use_gpu(False). */
static int
run_on_gpu(transfer_function *add, const struct plan *plan, unsigned *fp_flags, struct status *status)
{
    if (plan->chosen && (atomic_load(&gpu_barred) != 0 || !fpenv_is_default(fpenv_get()))) {
        *fp_flags = run_on_host(plan);
        return 0;
    }
    const int result = add(plan, NULL, fp_flags, status);
    if (result == 0)
        return 0;
    const bool in_place = plan->c == plan->a || plan->c == plan->b;
    if (!plan->chosen || (result == TRANSFER_SPOILED && in_place))
        return -1;
    record_failure(status);
    *fp_flags = run_on_host(plan);
    return 0;
}

int
plan_run(const struct plan *plan, unsigned *fp_flags, struct status *status)
{
    struct device_work work;
    *fp_flags = 0;
    switch (plan->route) {
    case ROUTE_HOST:
        *fp_flags = run_on_host(plan);
        return 0;
    case ROUTE_TRANSFER:
        return run_on_gpu(transfer_add, plan, fp_flags, status);
    case ROUTE_HYBRID:
        return run_on_gpu(hybrid_add, plan, fp_flags, status);
    case ROUTE_DEVICE:
        work = device_work_of(plan);
        return device_add(&work, status);
    case ROUTE_NONE:
        break;
    }
    return status_set(status, STATUS_VALUE, "plan has no route %d", (int)plan->route);
}
