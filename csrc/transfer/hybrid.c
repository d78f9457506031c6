/* hybrid: the processor adds from the front and the GPU from the back until they meet, so that the shares need not be
 * known beforehand. 1e8 float32 in pinned memory: 7.07 ms, where 16 threads alone take 7.74 and the GPU alone 15.3.
 *
 * It must never be slower than the better of the two alone. One thread drives the GPU and adds while chunks are in
 * flight, so that no thread is lost to the driving. The GPU gets a chunk only if, judging by its last chunks, the sum
 * will be back before the processor could have added all that is left.
 *
 * Ordinary memory is left to the processor: copying a chunk into pinned memory and its sum back takes a thread longer
 * than adding it. 15 threads and one that feeds the GPU took 7.94 ms, 16 that add 7.79. */
#include <stdint.h>

#include "base/now.h"
#include "gpu/device.h"
#include "host/add.h"
#include "host/threads.h"
#include "transfer/slots.h"

/* Bytes of c. Both ends move by whole grains. */
enum {
    GRAIN = 64 << 10,
    GRAINS_A_BLOCK = 4,  /* 256 KiB: the host's own block of streaming stores */
    GRAINS_A_CHUNK = 64, /* 4 MiB go over the link at 53.5 of 55 GB/s */
    MIN_CHUNK = 16,      /* grains; 1 MiB goes at 49 */
    DEPTH = 2,           /* chunks in flight */
};

/* Until the first chunk is back: three operands of 4 MiB at 20 GB/s. */
#define FIRST_GUESS 10e-6 /* seconds a grain */
#define MARGIN      1.2   /* on the last chunk's time: chunks differ by a tenth */

struct hybrid {
    struct transfer *job;
    const struct device_scope *scope;
    host_add_function *add;
    size_t grain; /* components */
    size_t skip;  /* components before c's first in the grid of grains: grains begin on whole pages of c */
    int threads;
    _Atomic uint64_t free; /* grains [front, back) are not taken yet: front in the low half, back in the high one */
    atomic_size_t added;   /* grains that the processor has added */
    double begin;          /* seconds */
};

static size_t
front_of(uint64_t free_grains)
{
    return (size_t)(free_grains & UINT32_MAX);
}

static size_t
back_of(uint64_t free_grains)
{
    return (size_t)(free_grains >> 32);
}

/* Takes at most `most` grains from one end; returns how many, beginning at *begin. */
static size_t
take(struct hybrid *hybrid, bool from_back, size_t most, size_t *begin)
{
    uint64_t before = atomic_load(&hybrid->free), after;
    size_t count;
    do {
        const size_t front = front_of(before), back = back_of(before), left = back - front;
        count = left < most ? left : most;
        *begin = from_back ? back - count : front;
        after = from_back ? (uint64_t)(back - count) << 32 | front : (uint64_t)back << 32 | (front + count);
    } while (count > 0 && !atomic_compare_exchange_weak(&hybrid->free, &before, after));
    return count;
}

/* The components of the grains [begin, begin + count). */
static size_t
components_of(const struct hybrid *hybrid, size_t begin, size_t count, size_t *first)
{
    const size_t n = hybrid->job->plan->n, from = begin * hybrid->grain, to = (begin + count) * hybrid->grain;
    *first = from > hybrid->skip ? from - hybrid->skip : 0;
    const size_t end = to - hybrid->skip < n ? to - hybrid->skip : n;
    return end - *first;
}

/* Adds the next grains from the front; false where none are left. */
static bool
add_some(struct hybrid *hybrid, size_t most)
{
    const struct plan *plan = hybrid->job->plan;
    size_t begin, first;
    const size_t count = atomic_load(&hybrid->job->failed) ? 0 : take(hybrid, false, most, &begin);
    if (count == 0)
        return false;
    const size_t components = components_of(hybrid, begin, count, &first), offset = first * hybrid->job->width;
    hybrid->add((const char *)plan->a + offset, (const char *)plan->b + offset, (char *)plan->c + offset, components);
    atomic_fetch_add(&hybrid->added, count);
    return true;
}

/* How many grains the GPU should take now; 0: none yet. `each` is the seconds that a grain of the last chunk took. */
static size_t
gpu_share(const struct hybrid *hybrid, double each)
{
    const uint64_t free_grains = atomic_load(&hybrid->free);
    const size_t left = back_of(free_grains) - front_of(free_grains), added = atomic_load(&hybrid->added);
    if (added < 2 * GRAINS_A_BLOCK * (size_t)hybrid->threads) /* the threads are still waking up */
        return 0;
    const double host_needs = (double)left * (now_seconds() - hybrid->begin) / (double)added;
    for (size_t count = GRAINS_A_CHUNK; count >= MIN_CHUNK; count /= 2)
        if (count <= left && MARGIN * each * (double)count <= host_needs)
            return count;
    return 0;
}

/* 1 where the slot has nothing in flight, 0 where it has, -1 after an error. */
static int
slot_is_free(struct transfer *job, struct slot *slot)
{
    if (slot->count == 0)
        return 1;
    const cudaError_t error = cudaStreamQuery(slot->stream);
    if (error == cudaErrorNotReady)
        return 0;
    if (error != cudaSuccess)
        return transfer_cuda_fail(job, error, "cudaStreamQuery");
    slot->count = 0;
    return 1;
}

/* Opens the slots. Without room on the device the processor adds everything, which is no error. */
static int
open_slots(struct hybrid *hybrid)
{
    struct transfer *job = hybrid->job;
    struct status ignored;
    int open = 0;
    for (; open < DEPTH; open++)
        if (slot_open(job, &job->slots[open], hybrid->scope, &ignored) < 0)
            break;
    if (open < DEPTH)
        while (open > 0)
            slot_close(&job->slots[--open]);
    for (int i = 0; i < open; i++)
        slot_start(job, &job->slots[i]);
    return open;
}

/* Feeds the GPU and adds meanwhile, until nothing is left. Returns how many slots are open. */
static int
feed_and_add(struct hybrid *hybrid)
{
    struct transfer *job = hybrid->job;
    double each = FIRST_GUESS, queued_at[DEPTH] = {0};
    size_t grains[DEPTH] = {0};
    int open = 0;
    bool feeding = true;
    for (size_t turn = 0; !atomic_load(&job->failed);) {
        const size_t share = feeding ? gpu_share(hybrid, each) : 0;
        if (share > 0 && open == 0)
            feeding = (open = open_slots(hybrid)) > 0;
        const size_t at = turn % DEPTH;
        struct slot *slot = &job->slots[at];
        if (share > 0 && open > 0) {
            const bool flew = slot->count > 0;
            const int is_free = slot_is_free(job, slot);
            if (is_free < 0)
                break;
            if (is_free && flew) {
                each = (now_seconds() - queued_at[at]) / (double)grains[at];
                continue; /* try again with the better estimate */
            }
            size_t begin, first;
            if (is_free && (grains[at] = take(hybrid, true, share, &begin)) > 0) {
                const size_t components = components_of(hybrid, begin, grains[at], &first);
                queued_at[at] = now_seconds();
                if (slot_queue(job, slot, turn, first, components) < 0)
                    break;
                turn++;
                continue;
            }
        }
        if (!add_some(hybrid, open ? 1 : GRAINS_A_BLOCK))
            break;
    }
    return open;
}

static void
drive_gpu(struct hybrid *hybrid)
{
    struct transfer *job = hybrid->job;
    struct device_scope scope;
    struct status status;
    if (device_enter_relaxed(&scope, job->device, &status) < 0) {
        transfer_fail(job, &status);
        return;
    }
    const int open = feed_and_add(hybrid);
    for (int i = 0; i < open; i++) {
        slot_finish(job, &job->slots[i]);
        slot_close(&job->slots[i]);
    }
    device_leave(&scope);
}

/* threads_body: part 0 drives the GPU, the others only add. */
static void
run_parts(void *context, size_t begin, size_t end, int worker)
{
    (void)worker;
    for (size_t part = begin; part < end; part++) {
        if (part == 0)
            drive_gpu(context);
        while (add_some(context, GRAINS_A_BLOCK))
            ;
    }
}

int
hybrid_run(struct transfer *job, const struct device_scope *scope)
{
    const struct plan *plan = job->plan;
    const struct host_schedule *schedule = &plan->schedule;
    if (!transfer_all_pinned(job)) {
        atomic_store(&job->fp_flags,
                     host_add(plan->simd, schedule, plan->component, plan->a, plan->b, plan->c, plan->n));
        return 0;
    }
    struct transfer_ring *ring = transfer_ring_get(scope->device, DEPTH, job->status);
    if (!ring)
        return -1;
    job->slots = ring->slots;

    struct hybrid hybrid = {
        .job = job,
        .scope = scope,
        .add = host_loop(plan->simd, schedule, plan->component, schedule->streaming),
        .grain = GRAIN / job->width,
        .skip = (uintptr_t)plan->c % GRAIN / job->width,
        .threads = schedule->threads,
        .begin = now_seconds(),
    };
    const size_t grains = (plan->n + hybrid.skip + hybrid.grain - 1) / hybrid.grain;
    job->chunk = hybrid.grain * (grains < GRAINS_A_CHUNK ? grains : GRAINS_A_CHUNK);
    atomic_store(&hybrid.free, (uint64_t)grains << 32);
    const unsigned flags = threads_run_all(hybrid.threads, (size_t)hybrid.threads, 1, run_parts, &hybrid);
    atomic_fetch_or(&job->fp_flags, flags);
    return 0;
}
