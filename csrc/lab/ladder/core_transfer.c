/* The package's own transfer as two rungs: csrc/transfer/transfer.c on page-locked memory and on ordinary memory. */
#include "lab/ladder/core_transfer.h"

#include <time.h>

#include "gpu/device.h"
#include "lab/ladder/transfer_rung.h"

enum { STEPS_A_CHUNK = 4, MAX_THREADS = 256 };

static size_t
before(void *context, enum transfer_step step, int slot, void *stream, size_t chunk)
{
    static const enum timeline_what what[] = {
        [TRANSFER_TO_DEVICE] = TIMELINE_TO_DEVICE,
        [TRANSFER_KERNEL] = TIMELINE_KERNEL,
        [TRANSFER_TO_HOST] = TIMELINE_TO_HOST,
    };
    return timeline_begin(context, what[step], slot, stream, chunk);
}

static void
after(void *context, size_t token, void *stream)
{
    timeline_end(context, token, stream);
}

struct plan
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

int
run_by_core(transfer_function *add, const struct plan *plan, struct transfer_options options,
            const struct rung_call *call, struct status *status)
{
    unsigned fp_flags;
    if (!call->timeline || call->n == 0)
        return add(plan, &options, &fp_flags, status) < 0 ? -1 : 0;

    struct device_scope scope;
    if (device_enter_relaxed(&scope, call->device, status) < 0)
        return -1;
    const struct transfer_observer observer = {before, after, call->timeline};
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
run_transfer_by_core(const struct rung_call *call, struct transfer_options options, struct status *status)
{
    const struct plan plan = plan_of_rung_call(call);
    return run_by_core(transfer_add, &plan, options, call, status);
}

static int
run_staged(const struct rung_call *call, struct status *status)
{
    return run_transfer_by_core(call, (struct transfer_options){.way = TRANSFER_STAGED, .threads = call->params[0]},
                                status);
}

static int
run_tuned_transfer(const struct rung_call *call, struct status *status)
{
    return run_transfer_by_core(call, (struct transfer_options){.way = (enum transfer_way)call->params[0]}, status);
}

const struct rung rung_staged = {
    .name = "staged",
    .kind = RUNG_TRANSFER,
    .after = "pageable",
    .changes = "ordinary memory through a page-locked ring that is kept and that several threads fill and empty",
    .tested = "double",
    .stages = STAGES_OVERLAPPING,
    .memory = RUNG_MEMORY_PAGEABLE,
    .components = EVERY_COMPONENT,
    .params = {{"threads", "that fill and empty the ring; 0: as many as there are", 0, 0, MAX_THREADS}},
    .run = run_staged,
};

const struct rung rung_tuned_transfer = {
    .name = "tuned_transfer",
    .kind = RUNG_TRANSFER,
    .after = "streams2",
    .changes = "what add(device=\"cuda\") does: tapered chunks, kept streams; ordinary memory as staged does it",
    .tested = "double",
    .stages = STAGES_OVERLAPPING,
    .memory = RUNG_MEMORY_EITHER,
    .components = EVERY_COMPONENT,
    .params = {{"way",
                "0: zero-copy where page-locked arrays are small; 1: never; 2: for page-locked arrays of any size",
                TRANSFER_BEST, TRANSFER_BEST, TRANSFER_ZERO_COPY}},
    .run = run_tuned_transfer,
};
