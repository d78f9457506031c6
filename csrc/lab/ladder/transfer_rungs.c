/* The transfer rungs: host arrays through a GPU and back. Most are rows of `struct copies`, which copies_run() carries
 * out. */
#include <stdint.h>
#include <string.h>

#include "base/util.h"
#include "choose/plan.h"
#include "gpu/device.h"
#include "lab/ladder/transfer_rung.h"
#include "transfer/transfer.h"

#define COPIES(...) .kind = RUNG_TRANSFER, .copies = &(const struct copies){__VA_ARGS__}, .run = copies_run

/* The stages one after the other: upload, kernel, download. The rungs differ in the kind of host memory and in where
 * the host waits. */

static const struct rung pageable = {
    .name = "pageable",
    COPIES(.blocking = true),
    .changes = "ordinary memory, blocking copies, one kernel",
    .params = {KERNEL_PARAM(KERNEL_NAIVE), ALLOCATES_PARAM(1)},
};

static const struct rung pinned = {
    .name = "pinned",
    COPIES(.blocking = true),
    .after = "pageable",
    .changes = "page-locked memory: the link reads it in place, no copy into a staging buffer",
    .params = {KERNEL_PARAM(KERNEL_NAIVE), ALLOCATES_PARAM(1)},
    .memory = RUNG_MEMORY_PINNED,
};

static const struct rung pinned_reused = {
    .name = "pinned_reused",
    COPIES(.blocking = true, .arrays = ARRAYS_KEPT),
    .after = "pinned",
    .changes = "device arrays kept from run to run: nothing is allocated in the timed part",
    .params = {KERNEL_PARAM(KERNEL_NAIVE)},
    .memory = RUNG_MEMORY_PINNED,
};

static const struct rung stream1_pinned = {
    .name = "stream1_pinned",
    COPIES(.streams = 1),
    .after = "pinned_reused",
    .changes = "asynchronous copies on one stream: still one after the other, so nothing is gained (control)",
    .params = {KERNEL_PARAM(KERNEL_NAIVE), ALLOCATES_PARAM(0)},
    .memory = RUNG_MEMORY_PINNED,
};

/* Chunks on several streams, so that both directions of the link work at once. */

enum { CHUNK = 1 << 22, TIMED_PARAM = 1, CHUNK_PARAM = 2 }; /* 4 Mi elements, 16 MiB of float32 */

static const struct rung streams2 = {
    .name = "streams2",
    COPIES(.streams = 2, .chunk_param = CHUNK_PARAM),
    .after = "pinned",
    .changes = "chunks on two streams in turn, three buffers a stream: while one comes down, the other goes up",
    .params = {KERNEL_PARAM(KERNEL_FLOAT4),
               ALLOCATES_PARAM(1),
               {"chunk", "elements a chunk; a complex one counts twice", 1 << 10, CHUNK, 1 << 28}},
    .stages = STAGES_OVERLAPPING,
    .memory = RUNG_MEMORY_PINNED,
};

// chunks_reused: document 000's chunks one after the other, through the same three device buffers, and what of them is
// timed.
//
// The document adds up the 32 kernels of such a run, 83.14 us each on a card of 448 GB/s, and finds less than for one
// kernel over all elements. Its profiler reads each kernel's inputs from memory, because it empties the caches before
// (Nsight Compute's --cache-control all); 33.6 MB in 83.14 us are 404 GB/s. The sum, 16.8 MB, fits in that card's L2
// and is still there when the kernel ends; writing it to memory falls to what takes its place there later. `timed`
// says which of this is counted:
//
//     whole         copies and kernels, by the host's clock
//     kernels       the kernels alone, by events around each: their inputs are where the copies have left them
//     kernels_cold  the same after other memory was read, so that the inputs come from memory: the document's figure
//     kernels_paid  the same, and other memory is read after each kernel until its sum has left the L2. What that
//                   reading takes after a kernel that does nothing is subtracted, and the empty kernel added.
//
// An event on each side of a kernel counts its launch too, some 2.8 us on an H200.

static const char *const timed_names[] = {"whole", "kernels", "kernels_cold", "kernels_paid", NULL};

static const struct rung chunks_reused = {
    .name = "chunks_reused",
    COPIES(.streams = 1, .arrays = ARRAYS_KEPT, .chunk_param = CHUNK_PARAM, .timed_param = TIMED_PARAM),
    .after = "stream1_pinned",
    .changes = "chunks through three device buffers, again and again; timed as a whole, or each kernel by itself",
    .params = {KERNEL_PARAM(KERNEL_CHUNKED),
               {"timed", "0 whole, 1 kernels, 2 kernels_cold, 3 kernels_paid", 0, TIMED_COLD, TIMED_PAID, timed_names},
               {"chunk", "elements a chunk; a complex one counts twice", 1 << 10, CHUNK, 1 << 28}},
    .by_name = true, /* its usual time is not that of a round trip */
    .memory = RUNG_MEMORY_PINNED,
};

static const struct rung streams4 = {
    .name = "streams4",
    COPIES(.streams = 4, .streams_inside = true),
    .after = "stream1_pinned",
    .changes = "a quarter on each of four streams, which are made inside the timed part",
    .params = {KERNEL_PARAM(KERNEL_NAIVE), ALLOCATES_PARAM(0)},
    .stages = STAGES_OVERLAPPING,
    .memory = RUNG_MEMORY_PINNED,
    .allocates = true,
};

static const struct rung streams4_pageable = {
    .name = "streams4_pageable",
    COPIES(.streams = 4, .streams_inside = true),
    .after = "streams4",
    .changes = "ordinary memory: a copy that is called asynchronous waits all the same (control)",
    .params = {KERNEL_PARAM(KERNEL_NAIVE), ALLOCATES_PARAM(0)},
    .allocates = true,
};

/* What a function costs that takes host arrays and gives host arrays. */

static const struct rung copy_blocking = {
    .name = "copy_blocking",
    COPIES(.blocking = true),
    .after = "pageable",
    .changes = "a function that allocates, copies, adds, copies back and frees: blocking, default stream",
    .params = {KERNEL_PARAM(KERNEL_NAIVE), ALLOCATES_PARAM(1)},
};

static const struct rung copy_async = {
    .name = "copy_async",
    COPIES(.device_wait = true),
    .after = "copy_blocking",
    .changes = "asynchronous copies on the default stream, one wait for the device at the end",
    .params = {KERNEL_PARAM(KERNEL_NAIVE), ALLOCATES_PARAM(1)},
};

static const struct rung copy_stream = {
    .name = "copy_stream",
    COPIES(.streams = 1),
    .after = "copy_async",
    .changes = "the same on a stream made for the call, and a wait for that stream alone",
    .params = {KERNEL_PARAM(KERNEL_NAIVE), ALLOCATES_PARAM(1)},
};

/* Device arrays that are allocated in each call: by cudaMalloc, which maps and unmaps memory and waits for the device,
 * and from a stream-ordered pool, which keeps freed memory. */

static const struct rung malloc_each_call = {
    .name = "malloc_each_call",
    COPIES(.streams = 1, .arrays = ARRAYS_MALLOC_EACH_CALL),
    .after = "stream1_pinned",
    .changes = "cudaMalloc and cudaFree of three arrays around every addition",
    .params = {KERNEL_PARAM(KERNEL_NAIVE)},
    .memory = RUNG_MEMORY_PINNED,
    .allocates = true,
};

static const struct rung pool = {
    .name = "pool",
    COPIES(.streams = 1, .arrays = ARRAYS_POOL_EACH_CALL),
    .after = "malloc_each_call",
    .changes = "the three arrays from a stream-ordered pool, which keeps what is freed for the next call",
    .params = {KERNEL_PARAM(KERNEL_NAIVE)},
    .memory = RUNG_MEMORY_PINNED,
    .allocates = true,
};

// managed: three arrays that host and device share; the driver moves their pages to the side that touches them.
//
// The host copies its operands in and the sum out, because a caller's arrays are never managed memory; the kernel's
// page faults are the transfer. Small sizes only: how long a fault takes depends on the driver, and nothing bounds it.

enum { MAX_BYTES = 64 << 20 };

static int
check_support(const struct transfer_run *run, struct status *status)
{
    int supported = 0;
    if (run->bytes > MAX_BYTES)
        return status_set(status, STATUS_VALUE,
                          "rung managed takes arrays of at most %d MiB, not %zu bytes: its pages move a few at a time",
                          MAX_BYTES >> 20, run->bytes);
    if (CUDA_CALL(status, cudaDeviceGetAttribute, &supported, cudaDevAttrConcurrentManagedAccess, run->scope.device) <
        0)
        return -1;
    return supported ? 0
                     : status_set(status, STATUS_VALUE,
                                  "rung managed needs managed memory that the host may touch while the GPU works, and "
                                  "cuda:%d has none",
                                  run->scope.device);
}

static int
open_arrays(const struct transfer_run *run, void *managed[3], struct status *status)
{
    for (int i = 0; i < 3; i++) {
        cudaError_t error = cudaMallocManaged(&managed[i], run->bytes, cudaMemAttachGlobal);
        if (error != cudaSuccess) {
            managed[i] = NULL;
            return device_status(status, error, "cudaMallocManaged");
        }
    }
    return 0;
}

static void
close_arrays(void *managed[3])
{
    for (int i = 0; i < 3; i++) {
        if (managed[i])
            device_ignore(cudaFree(managed[i]));
        managed[i] = NULL;
    }
}

static void
copy_by_host(const struct transfer_run *run, enum timeline_what what, void *target, const void *source)
{
    const size_t entry = timeline_begin_host(run->call->timeline, what);
    memcpy(target, source, run->bytes);
    timeline_end_host(run->call->timeline, entry);
}

static int
add_and_wait(const struct transfer_run *run, void *const managed[3], struct status *status)
{
    const struct rung_call *call = run->call;
    copy_by_host(run, TIMELINE_TO_DEVICE, managed[0], call->a);
    copy_by_host(run, TIMELINE_TO_DEVICE, managed[1], call->b);
    if (transfer_kernel_accumulates(run))
        memset(managed[2], 0, run->bytes);
    int result = transfer_kernel_queue(run, managed[0], managed[1], managed[2], call->n, NULL, 0, 0, status);
    result = transfer_wait(NULL, result, status);
    if (result == 0)
        copy_by_host(run, TIMELINE_TO_HOST, call->c, managed[2]);
    return result;
}

static int
run_managed(const struct rung *rung, const struct rung_call *call, struct status *status)
{
    struct transfer_run run;
    void *managed[3] = {NULL};
    struct timeline *timeline = call->timeline;
    const bool inside = call->params[PARAM_ALLOCATES];
    if (call->n == 0)
        return 0;
    int result = -1;
    if (transfer_run_enter(&run, rung, call, status) < 0 || check_support(&run, status) < 0 ||
        timeline_open(timeline, 6, status) < 0 || (!inside && open_arrays(&run, managed, status) < 0))
        goto done;

    run.begin = now_seconds();
    if (inside) {
        const size_t entry = timeline_begin_host(timeline, TIMELINE_ALLOCATE);
        const int opened = open_arrays(&run, managed, status);
        timeline_end_host(timeline, entry);
        if (opened < 0)
            goto done;
    }
    result = add_and_wait(&run, managed, status);
    if (inside) {
        const size_t entry = timeline_begin_host(timeline, TIMELINE_FREE);
        close_arrays(managed);
        timeline_end_host(timeline, entry);
    }
    run.seconds = now_seconds() - run.begin;
done:
    close_arrays(managed);
    return transfer_run_leave(&run, result, status);
}

static const struct rung managed = {
    .name = "managed",
    .kind = RUNG_TRANSFER,
    .after = "pageable",
    .changes = "unified memory: the driver moves pages to where they are touched; at most 64 MiB an array",
    .params = {KERNEL_PARAM(KERNEL_NAIVE), ALLOCATES_PARAM(0)},
    .by_name = true,
    .run = run_managed,
};

// zero_copy: no copy at all. The kernel reads and writes page-locked host memory through its device address; its loads
// and stores use both directions of the link at once.
//
// 2^28 float32 over PCIe 5 take 43.5 ms in one launch, where a pipeline of copies takes 41.4.

static int
device_address(const void *host, void **device, struct status *status)
{
    return CUDA_CALL(status, cudaHostGetDevicePointer, device, (void *)host, 0);
}

static int
check_kernel(const struct transfer_run *run, void *const device[3], struct status *status)
{
    const char *name = run->kernel->name;
    if (transfer_kernel_accumulates(run))
        return status_set(status, STATUS_VALUE,
                          "rung zero_copy: the kernel %s adds to the contents of out; take one that writes the sum",
                          name);
    for (int i = 0; i < 3 && run->kernel->alignment; i++)
        if ((uintptr_t)device[i] % run->kernel->alignment)
            return status_set(
                status, STATUS_VALUE,
                "rung zero_copy: the kernel %s takes memory aligned to %zu bytes; naive and tuned take any", name,
                run->kernel->alignment);
    return 0;
}

static int
run_zero_copy(const struct rung *rung, const struct rung_call *call, struct status *status)
{
    struct transfer_run run;
    void *device[3];
    if (call->n == 0)
        return 0;
    int result = -1;
    if (transfer_run_enter(&run, rung, call, status) < 0 || device_address(call->a, &device[0], status) < 0 ||
        device_address(call->b, &device[1], status) < 0 || device_address(call->c, &device[2], status) < 0 ||
        check_kernel(&run, device, status) < 0 || timeline_open(call->timeline, 1, status) < 0)
        goto done;

    run.begin = now_seconds();
    result = transfer_kernel_queue(&run, device[0], device[1], device[2], call->n, NULL, 0, 0, status);
    result = transfer_wait(NULL, result, status);
    run.seconds = now_seconds() - run.begin;
done:
    return transfer_run_leave(&run, result, status);
}

static const struct rung zero_copy = {
    .name = "zero_copy",
    .kind = RUNG_TRANSFER,
    .after = "streams2",
    .changes = "no copies and no device arrays: the kernel reads and writes page-locked host memory over the link",
    .params = {KERNEL_PARAM(KERNEL_NAIVE)},
    .stages = STAGES_OVERLAPPING,
    .memory = RUNG_MEMORY_PINNED,
    .run = run_zero_copy,
};

/* The package's own transfer as rungs: csrc/transfer on page-locked memory and on ordinary memory. */

enum { STEPS_A_CHUNK = 4, MAX_THREADS = 256 };

static size_t
before_step(void *context, enum transfer_step step, int slot, void *stream, size_t chunk)
{
    return timeline_begin(context, (enum timeline_what)step, slot, stream,
                          chunk); /* the same steps in the same order */
}

static void
after_step(void *context, size_t token, void *stream)
{
    timeline_end(context, token, stream);
}

/* A plan with the call's operands and device. */
static struct plan
plan_of_rung_call(const struct rung_call *call)
{
    return (struct plan){.route = ROUTE_TRANSFER,
                         .component = call->component,
                         .n = call->n,
                         .a = call->a,
                         .b = call->b,
                         .c = call->c,
                         .device = call->device};
}

/* Runs `add`; the call's timeline records each copy and kernel. Returns 0, or -1 with *status set. */
static int
run_by_core(transfer_function *add, const struct plan *plan, struct transfer_options options,
            const struct rung_call *call, struct status *status)
{
    unsigned fp_flags;
    if (!call->timeline || call->n == 0)
        return add(plan, &options, &fp_flags, status) < 0 ? -1 : 0;

    struct device_scope scope;
    if (device_enter_relaxed(&scope, call->device, status) < 0)
        return -1;
    const struct transfer_observer observer = {before_step, after_step, call->timeline};
    options.observer = &observer;
    int result = timeline_open(call->timeline,
                               STEPS_A_CHUNK * transfer_most_chunks(call->n * component_size[call->component]), status);
    if (result == 0)
        result = add(plan, &options, &fp_flags, status) < 0 ? -1 : 0;
    if (timeline_close(call->timeline, result == 0, status) < 0)
        result = -1;
    device_leave(&scope);
    return result;
}

static int
run_staged(const struct rung *rung, const struct rung_call *call, struct status *status)
{
    (void)rung;
    const struct plan plan = plan_of_rung_call(call);
    return run_by_core(transfer_add, &plan,
                       (struct transfer_options){.way = TRANSFER_STAGED, .threads = call->params[0]}, call, status);
}

static const struct rung staged = {
    .name = "staged",
    .kind = RUNG_TRANSFER,
    .after = "pageable",
    .changes = "ordinary memory through a page-locked ring that is kept and that several threads fill and empty",
    .params = {{"threads", "that fill and empty the ring; 0: as many as there are", 0, 0, MAX_THREADS}},
    .stages = STAGES_OVERLAPPING,
    .run = run_staged,
};

// hybrid: what add(device="hybrid") does, by csrc/transfer/transfer.c. Processor and GPU take blocks from the two ends
// of the arrays until they meet.
//
//   after    tuned_transfer
//   changes  the processor adds too; how fast each of the two is while they add decides their shares
//   expects  1e8 float32, page-locked: 7.3 ms by 15 threads and a GPU, 8.2 by 16 threads alone, 15.5 by the GPU
//            alone. Ordinary memory is the processor's: copying a chunk for the GPU takes longer than adding it
//   from     our own measurements
//   try      vecadd bench transfer --rungs tuned_transfer,hybrid

static int
run_hybrid(const struct rung *rung, const struct rung_call *call, struct status *status)
{
    (void)rung;
    const struct batch_add add = {call->a, call->b, call->c, call->n, call->component};
    const struct plan_request request = {.hybrid = true, .repeats = true, .threads = call->params[0]};
    struct plan plan;
    if (plan_host_run(&plan, &add, &request, status) < 0)
        return -1;
    plan.device = call->device;
    return run_by_core(hybrid_add, &plan, (struct transfer_options){0}, call, status);
}

static const struct rung hybrid = {
    .name = "hybrid",
    .kind = RUNG_TRANSFER,
    .after = "tuned_transfer",
    .changes = "the processor adds too, from the front, while the GPU adds from the back, until all is added",
    .params = {{"threads", "that add, one of which feeds the GPU too; 0: as many as add takes", 0, 0, MAX_THREADS}},
    .stages = STAGES_SHARED,
    .memory = RUNG_MEMORY_EITHER,
    .run = run_hybrid,
};

static int
run_tuned_transfer(const struct rung *rung, const struct rung_call *call, struct status *status)
{
    (void)rung;
    const struct plan plan = plan_of_rung_call(call);
    return run_by_core(transfer_add, &plan, (struct transfer_options){.way = (enum transfer_way)call->params[0]}, call,
                       status);
}

static const struct rung tuned_transfer = {
    .name = "tuned_transfer",
    .kind = RUNG_TRANSFER,
    .after = "streams2",
    .changes = "what add(device=\"cuda\") does: tapered chunks, kept streams; ordinary memory as staged does it",
    .params = {{"way",
                "0: zero-copy where page-locked arrays are small; 1: never; 2: for page-locked arrays of any size",
                TRANSFER_BEST, TRANSFER_BEST, TRANSFER_ZERO_COPY}},
    .stages = STAGES_OVERLAPPING,
    .memory = RUNG_MEMORY_EITHER,
    .run = run_tuned_transfer,
};

/* In the order in which one leads to the next. */
const struct rung *const transfer_rungs[] = {
    &pageable,      &pinned,         &pinned_reused, &stream1_pinned,
    &streams2,      &chunks_reused,  &streams4,      &streams4_pageable,
    &copy_blocking, &copy_async,     &copy_stream,   &malloc_each_call,
    &pool,          &managed,        &zero_copy,     &staged,
    &hybrid,        &tuned_transfer, NULL,
};
