#include "transfer/transfer.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/min_max.h"
#include "base/runtime.h"
#include "gpu/capture_mode.h"
#include "gpu/device.h"
#include "host/add.h"
#include "host/threads.h"
#include "transfer/slots.h"

/* Bytes of one operand's chunk.
 *
 * Pipeline, 1e8 float32 over PCIe 5: chunks that double from 512 KiB to 16 MiB and shrink again at the end take 15.3
 * ms, equal ones of 8 MiB 15.45, of 1 MiB 16.2. Small first and last chunks shorten the time in which only one
 * direction of the link works.
 *
 * Staged: a chunk is at most what a slot's page-locked memory holds. A smaller transfer is cut into two chunks a
 * thread, but not below what the link needs to get going: 64 KiB go at 20 GB/s, 1 MiB at 49. */
enum {
    PIPELINE_MIN = 512 << 10,
    PIPELINE_MAX = 16 << 20,
    STAGED_MIN = 128 << 10,
    PAGE = 4096,
};

/* Bytes of an operand up to which pinned operands go by zero-copy: zero_copy.c has the times beside an H200. */
enum { ZERO_COPY_MAX = 16 << 20 };

static pthread_mutex_t transferring = PTHREAD_MUTEX_INITIALIZER;

/* One thread queues everything on two streams in turn: while one stream's sum comes down, the other's operands go up.
 * Each stream's own order makes its slot safe to reuse. */
static void
run_pipeline(struct transfer *job)
{
    const size_t n = job->plan->n, least = PIPELINE_MIN / job->width, page = PAGE / job->width;
    for (int i = 0; i < job->depth; i++)
        slot_start(job, &job->slots[i]);
    size_t grown = smaller(least, job->chunk);
    for (size_t begin = 0, turn = 0; begin < n && !atomic_load(&job->failed); turn++) {
        const size_t left = n - begin;
        const size_t count = smaller(grown, larger(left / 2 / page * page, smaller(least, left)));
        slot_queue(job, &job->slots[turn % (size_t)job->depth], turn, begin, count);
        begin += count;
        grown = smaller(2 * grown, job->chunk);
    }
    for (int i = 0; i < job->depth; i++)
        slot_finish(job, &job->slots[i]);
}

/* One thread's part of a staged transfer: it fills one slot while its other slot is in flight, until no chunk is
 * left. */
static void
run_staged(struct transfer *job, struct slot *slots)
{
    struct device_scope scope;
    struct status status;
    if (device_enter_relaxed(&scope, job->device, &status) < 0) {
        transfer_fail(job, &status);
        return;
    }
    for (int i = 0; i < job->depth; i++)
        slot_start(job, &slots[i]);
    for (size_t turn = 0; !atomic_load(&job->failed); turn++) {
        struct slot *slot = &slots[turn % (size_t)job->depth];
        if (slot_drain(job, slot) < 0)
            break;
        const size_t begin = atomic_fetch_add(&job->next, job->chunk);
        if (begin >= job->plan->n)
            break;
        slot_queue(job, slot, begin / job->chunk, begin, smaller(job->chunk, job->plan->n - begin));
    }
    for (int i = 0; i < job->depth && !atomic_load(&job->failed); i++)
        slot_drain(job, &slots[i]);
    for (int i = 0; i < job->depth; i++)
        slot_finish(job, &slots[i]);
    device_leave(&scope);
}

/* threads_body: a block is one set of slots. It ends with its slots empty, so any thread may run it. */
static void
run_staged_sets(void *context, size_t begin, size_t end, int worker)
{
    struct transfer *job = context;
    (void)worker;
    for (size_t set = begin; set < end; set++)
        run_staged(job, &job->slots[set * (size_t)job->depth]);
}

static int
run_by_zero_copy(struct transfer *job, const struct device_scope *scope)
{
    struct transfer_ring *ring = transfer_ring_get(scope->device, 1, job->status);
    if (!ring || slot_open_stream(&ring->slots[0], job->status) < 0 || zero_copy_open(ring, job->status) < 0)
        return -1;
    job->slots = ring->slots;
    zero_copy_run(job, ring);
    return 0;
}

/* All that can fail beforehand is done before the first byte of c is written. */
static int
run_by_copies(struct transfer *job, const struct device_scope *scope)
{
    const struct plan *plan = job->plan;
    const size_t bytes = plan->n * job->width;
    size_t threads = 1, most = PIPELINE_MAX;
    if (!transfer_all_pinned(job)) {
        threads = (size_t)(job->options->threads ? job->options->threads : threads_available());
        most = smaller(larger(bytes / (2 * threads), STAGED_MIN), SLOT_HOST_BYTES);
    }
    job->chunk = smaller(most / job->width, plan->n);
    const size_t chunks = (plan->n + job->chunk - 1) / job->chunk;
    threads = smaller(threads, chunks);
    job->depth = (transfer_all_pinned(job) ? bytes > PIPELINE_MIN : chunks > threads) ? 2 : 1;

    const int size = (int)threads * job->depth;
    struct transfer_ring *ring = transfer_ring_get(scope->device, size, job->status);
    if (!ring)
        return -1;
    job->slots = ring->slots;

    int result = -1, open = 0;
    for (; open < size; open++)
        if (slot_open(job, &job->slots[open], scope, job->status) < 0)
            goto done;
    if (transfer_all_pinned(job))
        run_pipeline(job);
    else
        threads_run_all((int)threads, threads, 1, run_staged_sets, job);
    result = 0;
done:
    for (int i = 0; i < open; i++)
        slot_close(&job->slots[i]);
    return result;
}

static int
run_transfer(struct transfer *job, const struct device_scope *scope)
{
    const enum transfer_way way = job->options->way;
    if (way == TRANSFER_STAGED)
        job->a.pinned = job->b.pinned = job->c.pinned = false;
    else if (way != TRANSFER_COPIES && zero_copy_possible(job) &&
             (way == TRANSFER_ZERO_COPY || job->plan->n * job->width <= ZERO_COPY_MAX))
        return run_by_zero_copy(job, scope);
    return run_by_copies(job, scope);
}

/* Adds to the message that the output is undefined. */
static int
spoiled(struct status *status)
{
    const size_t length = strlen(status->text);
    snprintf(status->text + length, sizeof status->text - length, "; the output is undefined");
    return TRANSFER_SPOILED;
}

typedef int transfer_body(struct transfer *job, const struct device_scope *scope);

/* Runs `body` on the plan's device, one at a time in a process. */
static int
transfer_by(transfer_body *body, const struct plan *plan, const struct transfer_options *options, unsigned *fp_flags,
            struct status *status)
{
    static const struct transfer_options none = {0};
    *fp_flags = 0;
    struct device_scope scope;
    int device = plan->device;
    if (plan->n == 0)
        return device_find(&device, status);
    if (device_enter_primary(&scope, plan->device, status) < 0)
        return -1;
    struct transfer job = {.plan = plan,
                           .options = options ? options : &none,
                           .device = scope.device,
                           .width = component_size[plan->component],
                           .status = status};
    pthread_mutex_lock(&transferring);
    int result = transfer_find_memory(&job) < 0 ? -1 : body(&job, &scope);
    pthread_mutex_unlock(&transferring);
    if (result == 0 && atomic_load(&job.failed))
        result = spoiled(status);
    *fp_flags = atomic_load(&job.fp_flags);
    device_leave(&scope);
    return result;
}

int
transfer_add(const struct plan *plan, const struct transfer_options *options, unsigned *fp_flags, struct status *status)
{
    return transfer_by(run_transfer, plan, options, fp_flags, status);
}

int
hybrid_add(const struct plan *plan, const struct transfer_options *options, unsigned *fp_flags, struct status *status)
{
    return transfer_by(hybrid_run, plan, options, fp_flags, status);
}

size_t
transfer_most_chunks(size_t bytes)
{
    return bytes / STAGED_MIN + 1;
}

/* Takes the ring under the lock and frees it without the lock: freeing page-locked memory waits. */
size_t
transfer_release(void)
{
    struct device_scope scope;
    if (!runtime_cuda_usable() || pthread_mutex_trylock(&transferring) != 0)
        return 0;
    struct transfer_ring *ring = runtime.ring;
    const bool entered = ring && device_enter_to_release(&scope, ring->device);
    if (entered)
        runtime.ring = NULL;
    pthread_mutex_unlock(&transferring);
    if (!entered)
        return 0;
    const enum cudaStreamCaptureMode before = capture_mode_relax();
    const size_t bytes = transfer_ring_free(ring);
    capture_mode_restore(before);
    device_leave(&scope);
    return bytes;
}
