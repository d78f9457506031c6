/* The host rungs: what threads and streaming stores each bring, at every size; vecadd.add picks the best of them. */
#include "host/add.h"
#include "lab/base/rung.h"

enum { PARAM_THREADS, PARAM_BLOCK };

#define THREADS_AND_BLOCK                                                                                              \
    {                                                                                                                  \
        [PARAM_THREADS] = {"threads", "that add; 0: every processor that the process may use", 0, 0, 256},             \
        [PARAM_BLOCK] = {"block_kb", "of the sum that a thread takes at a time, KiB; 0: what add takes", 0, 0, 65536}, \
    }

static const struct rung threads_stream;

/* A rung without parameters adds on the calling thread. */
static int
run_on_host(const struct rung *rung, const struct rung_call *call, struct status *status)
{
    const int asked = rung->params[PARAM_THREADS].name ? call->params[PARAM_THREADS] : 1;
    const struct host_request request = {.component = call->component,
                                         .n = call->n,
                                         .moved = 3 * call->n * component_size[call->component],
                                         .unit = 1,
                                         .threads = asked ? asked : threads_available(),
                                         .stores = rung == &threads_stream ? STORES_STREAMING : STORES_ORDINARY,
                                         .block = (size_t)call->params[PARAM_BLOCK] << 10};
    struct host_schedule schedule;
    if (host_schedule(&schedule, &request, status) < 0)
        return -1;
    host_add(&schedule, call->component, call->a, call->b, call->c, call->n);
    return 0;
}

static const struct rung one_thread = {
    .name = "one_thread",
    .changes = "vector instructions chosen at run time, aligned stores, one thread",
    .run = run_on_host,
};

static const struct rung threads = {
    .name = "threads",
    .changes = "every processor that the process may use, blocks handed out as threads become free",
    .params = THREADS_AND_BLOCK,
    .run = run_on_host,
};

static const struct rung threads_stream = {
    .name = "threads_stream",
    .changes = "non-temporal stores: the output is not read before it is written",
    .params = THREADS_AND_BLOCK,
    .run = run_on_host,
};

const struct rung *const host_rungs[] = {&one_thread, &threads, &threads_stream, NULL};
