/* The host rungs: what threads and streaming stores each bring, at every size; vecadd.add picks the best of them. */
#include "host/add.h"
#include "host/threads.h"
#include "lab/base/rung.h"

static int
run_with(const struct rung_call *call, int threads, size_t block, bool streaming, struct status *status)
{
    const struct host_simd *simd = host_simd_chosen(status);
    if (simd == NULL)
        return -1;
    struct host_schedule schedule = host_schedule_forced(call->component, call->n, threads, streaming);
    if (block)
        schedule.block = block / component_size[call->component];
    host_add(simd, &schedule, call->component, call->a, call->b, call->c, call->n);
    return 0;
}

enum { PARAM_THREADS, PARAM_BLOCK };

#define THREADS_AND_BLOCK                                                                                              \
    {                                                                                                                  \
        [PARAM_THREADS] = {"threads", "that add; 0: every processor that the process may use", 0, 0, 256},             \
        [PARAM_BLOCK] = {"block_kb", "of the sum that a thread takes at a time, KiB; 0: what add takes", 0, 0, 65536}, \
    }

static int
run_one_thread(const struct rung_call *call, struct status *status)
{
    return run_with(call, 1, 0, false, status);
}

static int
run_threads_with(const struct rung_call *call, bool streaming, struct status *status)
{
    const int threads = call->params[PARAM_THREADS];
    return run_with(call, threads ? threads : threads_available(), (size_t)call->params[PARAM_BLOCK] << 10, streaming,
                    status);
}

static int
run_threads(const struct rung_call *call, struct status *status)
{
    return run_threads_with(call, false, status);
}

static int
run_threads_stream(const struct rung_call *call, struct status *status)
{
    return run_threads_with(call, true, status);
}

enum { ALL_COMPONENTS = (1 << COMPONENT_COUNT) - 1 };

static const struct rung one_thread = {
    .name = "one_thread",
    .kind = RUNG_HOST,
    .changes = "vector instructions chosen at run time, aligned stores, one thread",
    .tested = "double",
    .components = ALL_COMPONENTS,
    .run = run_one_thread,
};

static const struct rung threads = {
    .name = "threads",
    .kind = RUNG_HOST,
    .changes = "every processor that the process may use, blocks handed out as threads become free",
    .tested = "double",
    .components = ALL_COMPONENTS,
    .params = THREADS_AND_BLOCK,
    .run = run_threads,
};

static const struct rung threads_stream = {
    .name = "threads_stream",
    .kind = RUNG_HOST,
    .changes = "non-temporal stores: the output is not read before it is written",
    .tested = "double",
    .components = ALL_COMPONENTS,
    .params = THREADS_AND_BLOCK,
    .run = run_threads_stream,
};

const struct rung *const host_rungs[] = {&one_thread, &threads, &threads_stream, NULL};
