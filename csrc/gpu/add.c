#include "gpu/add.h"

#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "base/overlap.h"
#include "cuda/kernels.h"
#include "gpu/device.h"
#include "gpu/state.h"
#include "gpu/stream.h"

void
device_add_call(const struct device_scope *scope, const struct plan *plan, struct add_call *call)
{
    *call = (struct add_call){.component = plan->component,
                              .a = plan->a,
                              .b = plan->b,
                              .c = plan->c,
                              .n = plan->n,
                              .stream = plan->stream,
                              .programmatic = scope->state->programmatic};
    launch_config_choose(&scope->state->launch_configs, call);
}

/* Launches `tuned` into out, or into the temporary, which is then copied to out. Programmatic launches take the host
 * 3.45 us, plain ones 4.04 (H200). The kernel first waits for the kernel ahead, which ends after all work before it
 * whether or not it waited, on the legacy default stream too: tests/double/conformance/programmatic_tuned.cu. */
static int
queue_contiguous(const struct device_scope *scope, const struct plan *plan, void *temporary, bool *queued,
                 struct status *status)
{
    struct add_call call;
    device_add_call(scope, plan, &call);
    if (temporary)
        call.c = temporary;
    if (cuda_result(status, add_launch(&call), call.programmatic ? "cudaLaunchKernelExC" : "cudaLaunchKernel") < 0)
        return -1;
    *queued = true;
    if (!temporary)
        return 0;
    return CUDA_CALL(status, cudaMemcpyAsync, plan->c, temporary, plan_bytes(plan), cudaMemcpyDeviceToDevice,
                     plan->stream);
}

static size_t
itemsize_of_sum(const struct strided *add)
{
    return dtype_table[add->dtype[LAYOUT_SUM]].itemsize;
}

/* Sets an element to what leaves every other unchanged when added: -0.0, since 0.0 would turn -0.0 into 0.0. */
static void
set_neutral(unsigned char *element, enum dtype dtype)
{
    const struct dtype_row *row = &dtype_table[dtype];
    memset(element, 0, MAX_ITEMSIZE);
    for (size_t component = 1; component <= row->components && value_is_float(row->value); component++)
        element[component * component_size[row->component] - 1] = 0x80;
}

/* out = temporary + the neutral element, by the kernel that made the temporary. */
static cudaError_t
queue_copy(const struct plan *plan, void *temporary)
{
    const enum dtype dtype = plan->strided->dtype[LAYOUT_SUM];
    struct strided copy = {
        .dtype = {dtype, dtype, dtype}, .sum = dtype, .is_scalar = {false, true}, .layout = plan->strided->layout};
    layout_make_dense(&copy.layout, 0, dtype_table[dtype].itemsize);
    for (int i = 0; i < copy.layout.ndim; i++)
        copy.layout.stride[1][i] = 0;
    set_neutral(copy.scalar[1], dtype);
    return strided_launch(&copy, temporary, NULL, plan->c, plan->stream);
}

static cudaError_t
queue_strided(const struct plan *plan, void *temporary)
{
    if (!temporary)
        return strided_launch(plan->strided, plan->a, plan->b, plan->c, plan->stream);
    struct strided add = *plan->strided;
    layout_make_dense(&add.layout, LAYOUT_SUM, itemsize_of_sum(&add));
    const cudaError_t error = strided_launch(&add, plan->a, plan->b, temporary, plan->stream);
    return error == cudaSuccess ? queue_copy(plan, temporary) : error;
}

/* Additions of a batch, collected for the next launch. */
struct launcher {
    struct batch_segment *segments; /* BATCH_MAX */
    size_t count;
    cudaStream_t stream;
    bool queued; /* whether any launch is queued */
};

static cudaError_t
launch_collected(struct launcher *launcher)
{
    if (launcher->count == 0)
        return cudaSuccess;
    const cudaError_t error = batch_launch(launcher->segments, launcher->count, launcher->stream);
    launcher->count = 0;
    launcher->queued |= error == cudaSuccess;
    return error;
}

/* Cuts an addition into pieces whose size the table has room for. A piece's size is a multiple of 16 bytes, so every
 * piece is aligned as the whole is. */
static cudaError_t
collect(struct launcher *launcher, const struct batch_add *add)
{
    const size_t bytes = add->n * component_size[add->component];
    cudaError_t error = cudaSuccess;
    for (size_t done = 0; done < bytes && error == cudaSuccess; done += BATCH_MOST_BYTES) {
        const size_t left = bytes - done;
        launcher->segments[launcher->count++] =
            (struct batch_segment){.a = (const char *)add->a + done,
                                   .b = (const char *)add->b + done,
                                   .c = (char *)add->c + done,
                                   .bytes = (uint32_t)(left < BATCH_MOST_BYTES ? left : BATCH_MOST_BYTES),
                                   .component = add->component};
        if (launcher->count == BATCH_MAX)
            error = launch_collected(launcher);
    }
    return error;
}

cudaError_t
batch_launch_all(const struct device_work *batch, cudaStream_t stream, bool *queued)
{
    struct launcher launcher = {.stream = stream};
    launcher.segments = malloc(BATCH_MAX * sizeof *launcher.segments);
    if (!launcher.segments)
        return cudaErrorMemoryAllocation;
    cudaError_t error = cudaSuccess;
    for (size_t i = 0; i < batch->count && error == cudaSuccess; i++)
        error = collect(&launcher, &batch->adds[i]);
    if (error == cudaSuccess)
        error = launch_collected(&launcher);
    free(launcher.segments);
    *queued = launcher.queued;
    return error;
}

/* Queues the graph, or else the kernels. *queued says whether any work was. */
static int
queue(const struct device_scope *scope, const struct device_work *work, void *temporary, cudaGraphExec_t graph,
      bool *queued, struct status *status)
{
    if (graph) {
        const int result = CUDA_CALL(status, cudaGraphLaunch, graph, work->stream);
        *queued = result == 0;
        return result;
    }
    if (!work->plan)
        return cuda_result(status, batch_launch_all(work, work->stream, queued), "cudaLaunchKernel");
    if (!work->plan->strided)
        return queue_contiguous(scope, work->plan, temporary, queued, status);
    *queued = true; /* before the call: where one of several launches fails, others may be queued */
    return cuda_result(status, queue_strided(work->plan, temporary), "cudaLaunchKernel");
}

/* Where a step fails, waits for the work already queued: incomplete joins order nothing, and the operands' owners may
 * free their memory at once. */
int
device_queue(const struct device_scope *scope, const struct device_work *work, void *temporary, cudaGraphExec_t graph,
             struct status *status)
{
    const struct stream_joins joins = {work->device, work->stream, work->join, work->joins};
    bool in_capture = false, queued = false;
    int result = stream_join_in(&joins, &in_capture, status);
    if (result == 0)
        result = queue(scope, work, temporary, graph, &queued, status);
    if (result == 0)
        result = stream_join_back(&joins, in_capture, status);
    if (result < 0 && queued)
        stream_wait(work->stream);
    return result;
}

size_t
device_temporary_bytes(const struct plan *plan)
{
    const struct strided *add = plan->strided;
    if (!add) {
        const size_t bytes = plan_bytes(plan);
        return overlaps_in_part(plan->a, plan->c, bytes) || overlaps_in_part(plan->b, plan->c, bytes) ? bytes : 0;
    }
    return strided_overlaps(add, plan->a, plan->b, plan->c) ? plan->n * itemsize_of_sum(add) : 0;
}

int
device_add(const struct device_work *work, struct status *status)
{
    const struct plan *plan = work->plan;
    struct device_scope scope;
    if ((plan ? plan->n : work->count) == 0)
        return 0;
    if (device_enter(&scope, work->device, status) < 0)
        return -1;

    int result = -1;
    void *temporary = NULL, *stream = work->stream; /* of the temporary */
    const size_t bytes = plan ? device_temporary_bytes(plan) : 0;
    if (bytes && (stream_of_memory(work->device, work->stream, work->join, work->joins, &stream, status) < 0 ||
                  pool_allocate(&scope, stream, bytes, &temporary, status) < 0))
        goto done;

    result = device_queue(&scope, work, temporary, NULL, status);
done:
    pool_release(stream, temporary);
    device_leave(&scope);
    return result;
}
