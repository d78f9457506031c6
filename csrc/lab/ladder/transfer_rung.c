#include "lab/ladder/transfer_rung.h"

#include <stdint.h>

#include "base/util.h"
#include "cuda/lab/launches.h"
#include "gpu/device.h"

#define KERNELS(KERNEL)                                                                                                \
    KERNEL(KERNEL_NAIVE, naive)                                                                                        \
    KERNEL(KERNEL_RESTRICT, restrict)                                                                                  \
    KERNEL(KERNEL_FLOAT4, float4)                                                                                      \
    KERNEL(KERNEL_TUNED, tuned)                                                                                        \
    KERNEL(KERNEL_SINGLE_THREAD, single_thread)                                                                        \
    KERNEL(KERNEL_SINGLE_BLOCK, single_block)                                                                          \
    KERNEL(KERNEL_GRID_STRIDE, grid_stride)                                                                            \
    KERNEL(KERNEL_CHUNKED, chunked)

#define DECLARE(number, name)  extern const struct rung rung_##name;
#define POINT_TO(number, name) [number] = &rung_##name,
#define NAME(number, name)     [number] = #name,

KERNELS(DECLARE)

static const struct rung *const kernels[] = {KERNELS(POINT_TO)};

const char *const transfer_kernel_names[] = {KERNELS(NAME) NULL};
const char transfer_kernel_what[] =
    "0 naive, 1 restrict, 2 float4, 3 tuned, 4 single_thread; 5 single_block and 6 grid_stride add to a sum that is "
    "cleared first; 7 chunked, which is float4 with restrict";
const char transfer_allocates_what[] = "1: arrays and streams are made and freed inside the timed part";

/* Whether [memory, memory + bytes) begins and ends in page-locked memory. */
static int
is_pinned(const void *memory, size_t bytes, bool *pinned, struct status *status)
{
    const unsigned char *const ends[] = {memory, (const unsigned char *)memory + bytes - 1};
    *pinned = true;
    for (int i = 0; i < 2; i++) {
        struct cudaPointerAttributes attributes;
        if (CUDA_CALL(status, cudaPointerGetAttributes, &attributes, ends[i]) < 0)
            return -1;
        *pinned = *pinned && attributes.type == cudaMemoryTypeHost;
    }
    return 0;
}

static int
require_pinned(const struct transfer_run *run, struct status *status)
{
    const void *const operands[] = {run->call->a, run->call->b, run->call->c};
    static const char *const names[] = {"a", "b", "out"};
    for (int i = 0; i < 3; i++) {
        bool pinned;
        if (is_pinned(operands[i], run->bytes, &pinned, status) < 0)
            return -1;
        if (!pinned)
            return status_set(status, STATUS_VALUE, "rung %s takes page-locked memory and %s is not: use empty_pinned",
                              run->rung->name, names[i]);
    }
    return 0;
}

int
transfer_run_enter(struct transfer_run *run, const struct rung *rung, const struct rung_call *call,
                   struct status *status)
{
    const struct rung *kernel = kernels[call->params[PARAM_KERNEL]];
    *run = (struct transfer_run){.rung = rung, .call = call, .kernel = kernel};
    run->width = component_size[call->component];
    run->bytes = call->n * run->width;
    if (!rung_takes_component(kernel, call->component))
        return status_set(
            status, STATUS_VALUE,
            "rung %s: the kernel %s does not take elements of this dtype; naive, float4 and tuned take all", rung->name,
            kernel->name);
    if (device_enter_relaxed(&run->scope, call->device, status) < 0)
        return -1;
    run->entered = true;
    return rung->memory == RUNG_MEMORY_PINNED ? require_pinned(run, status) : 0;
}

int
transfer_run_leave(struct transfer_run *run, int result, struct status *status)
{
    if (!run->entered)
        return result;
    if (timeline_close(run->call->timeline, result == 0, status) < 0)
        result = -1;
    device_leave(&run->scope);
    if (result == 0 && run->call->seconds)
        *run->call->seconds = run->seconds;
    return result;
}

bool
transfer_kernel_accumulates(const struct transfer_run *run)
{
    return run->kernel->sum != SUM_WRITTEN;
}

static int
copy_queue(const struct transfer_run *run, const struct transfer_chunk *chunk, enum timeline_what what, void *target,
           const void *source, struct status *status)
{
    const enum cudaMemcpyKind kind = what == TIMELINE_TO_DEVICE ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    const size_t bytes = chunk->count * run->width;
    const size_t entry = timeline_begin(run->call->timeline, what, chunk->stream_number, chunk->stream, chunk->number);
    const cudaError_t error = chunk->blocking ? cudaMemcpy(target, source, bytes, kind)
                                              : cudaMemcpyAsync(target, source, bytes, kind, chunk->stream);
    timeline_end(run->call->timeline, entry, chunk->stream);
    return error == cudaSuccess ? 0 : device_status(status, error, chunk->blocking ? "cudaMemcpy" : "cudaMemcpyAsync");
}

int
transfer_kernel_queue(const struct transfer_run *run, const void *a, const void *b, void *c, size_t count,
                      cudaStream_t stream, int stream_number, size_t chunk, struct status *status)
{
    struct rung_call add = {.component = run->call->component, .a = a, .b = b, .c = c, .n = count, .stream = stream};
    rung_usual_params(run->kernel, &add);
    const size_t entry = timeline_begin(run->call->timeline, TIMELINE_KERNEL, stream_number, stream, chunk);
    const int error = run->kernel->launch(&add);
    timeline_end(run->call->timeline, entry, stream);
    return error == cudaSuccess ? 0 : device_status(status, error, run->kernel->name);
}

int
transfer_chunk_up(const struct transfer_run *run, const struct transfer_chunk *chunk, struct status *status)
{
    if (transfer_kernel_accumulates(run)) {
        if (CUDA_CALL(status, cudaMemsetAsync, chunk->device[2], 0, chunk->count * run->width, chunk->stream) < 0)
            return -1;
    }
    if (copy_queue(run, chunk, TIMELINE_TO_DEVICE, chunk->device[0], chunk->a, status) < 0)
        return -1;
    return copy_queue(run, chunk, TIMELINE_TO_DEVICE, chunk->device[1], chunk->b, status);
}

int
transfer_chunk_add(const struct transfer_run *run, const struct transfer_chunk *chunk, struct status *status)
{
    return transfer_kernel_queue(run, chunk->device[0], chunk->device[1], chunk->device[2], chunk->count, chunk->stream,
                                 chunk->stream_number, chunk->number, status);
}

int
transfer_chunk_down(const struct transfer_run *run, const struct transfer_chunk *chunk, struct status *status)
{
    return copy_queue(run, chunk, TIMELINE_TO_HOST, chunk->c, chunk->device[2], status);
}

int
transfer_chunk_queue(const struct transfer_run *run, const struct transfer_chunk *chunk, struct status *status)
{
    if (transfer_chunk_up(run, chunk, status) < 0 || transfer_chunk_add(run, chunk, status) < 0)
        return -1;
    return transfer_chunk_down(run, chunk, status);
}

int
transfer_wait(cudaStream_t stream, int result, struct status *status)
{
    const cudaError_t error = stream_wait(stream);
    return error == cudaSuccess || result < 0 ? result : device_status(status, error, "cudaStreamSynchronize");
}

/* --- The kernels of a transfer, timed by themselves */

struct kernel_timing {
    enum timed what;
    struct timeline *kernels; /* NULL where the whole is timed */
    void *other;              /* memory that is read to empty the L2; NULL where none is */
    size_t part;
};

/* What is timed of a chunk, as stream numbers of the timing's own timeline. */
enum { WITH_KERNEL, WITHOUT_KERNEL, EMPTY_KERNEL };

/* Other memory: the sink, then parts that are read in turn, so that no reading finds in the L2 what the one before has
 * left. Each takes the place of all that is in the L2. */
enum { PARTS = 3, L2_TIMES = 2, SINK_BYTES = 256 };

static int
open_other(struct kernel_timing *timing, const struct transfer_run *run, cudaStream_t stream, struct status *status)
{
    struct device_facts facts;
    if (device_facts(run->scope.device, &facts, status) < 0)
        return -1;
    timing->part = L2_TIMES * facts.l2;
    const size_t bytes = SINK_BYTES + PARTS * timing->part;
    if (pool_allocate(&run->scope, stream, bytes, &timing->other, status) < 0)
        return -1;
    return CUDA_CALL(status, cudaMemsetAsync, timing->other, 0, bytes, stream);
}

/* Before the clock starts. kernel_timing_close() follows, after a failure too. */
static int
kernel_timing_open(struct kernel_timing *timing, const struct transfer_run *run, cudaStream_t stream, size_t chunks,
                   struct status *status)
{
    if (timing->what == TIMED_WHOLE)
        return 0;
    if (timing->what >= TIMED_COLD && open_other(timing, run, stream, status) < 0)
        return -1;
    timing->kernels = timeline_new();
    if (!timing->kernels)
        return status_set(status, STATUS_MEMORY, "there is no memory for a timeline of %zu kernels", chunks);
    return timeline_open(timing->kernels, 3 * chunks, status);
}

/* Reads the first `bytes` of a part of the other memory. */
static int
read_other(const struct kernel_timing *timing, cudaStream_t stream, int part, size_t bytes, struct status *status)
{
    const char *from = (const char *)timing->other + SINK_BYTES + (size_t)part * timing->part;
    return cuda_result(status, (int)limits_read_launch(from, bytes, timing->other, stream), "cudaLaunchKernel");
}

/* Queues the read after a kernel that does next to nothing, and such a kernel alone. */
static int
queue_references(const struct kernel_timing *timing, const struct transfer_chunk *chunk, struct status *status)
{
    for (int what = WITHOUT_KERNEL; what <= EMPTY_KERNEL; what++) {
        const size_t entry = timeline_begin(timing->kernels, TIMELINE_KERNEL, what, chunk->stream, chunk->number);
        if (read_other(timing, chunk->stream, 0, sizeof(int) * 4, status) < 0 ||
            (what == WITHOUT_KERNEL && read_other(timing, chunk->stream, 2, timing->part, status) < 0))
            return -1;
        timeline_end(timing->kernels, entry, chunk->stream);
    }
    return 0;
}

/* transfer_chunk_queue() with what the timing adds. */
static int
kernel_timing_queue(const struct kernel_timing *timing, const struct transfer_run *run,
                    const struct transfer_chunk *chunk, struct status *status)
{
    const bool paid = timing->what == TIMED_PAID;
    if (transfer_chunk_up(run, chunk, status) < 0 ||
        (timing->other && read_other(timing, chunk->stream, 0, timing->part, status) < 0))
        return -1;
    const size_t entry = timeline_begin(timing->kernels, TIMELINE_KERNEL, WITH_KERNEL, chunk->stream, chunk->number);
    if (transfer_chunk_add(run, chunk, status) < 0 ||
        (paid && read_other(timing, chunk->stream, 1, timing->part, status) < 0))
        return -1;
    timeline_end(timing->kernels, entry, chunk->stream);
    if (paid && queue_references(timing, chunk, status) < 0)
        return -1;
    return transfer_chunk_down(run, chunk, status);
}

/* When all is done: sets *seconds where kernels were timed. Returns `result`, or -1 with *status set. */
static int
kernel_timing_close(struct kernel_timing *timing, cudaStream_t stream, int result, double *seconds,
                    struct status *status)
{
    if (timeline_close(timing->kernels, result == 0, status) < 0)
        result = -1;
    if (result == 0 && timing->what != TIMED_WHOLE) {
        const struct timeline_entry *entries;
        const size_t count = timeline_entries(timing->kernels, &entries);
        *seconds = 0;
        for (size_t i = 0; i < count; i++) {
            const double each = entries[i].end - entries[i].begin;
            *seconds += entries[i].stream == WITHOUT_KERNEL ? -each : each;
        }
    }
    timeline_free(timing->kernels);
    pool_release(stream, timing->other);
    return result;
}

/* --- Copies and kernels on streams */

/* Parts of one array begin where the widest access of any kernel may. */
enum { PART_BYTES = 256 };

struct component_set {
    cudaStream_t stream;
    void *device[3]; /* of a, b, c: a chunk's, or in set 0 the whole arrays */
};

struct copies_state {
    struct transfer_run run;
    const struct copies *how;
    struct kernel_timing timing;
    struct component_set sets[COPIES_STREAMS];
    int streams;      /* at least 1: the legacy default stream counts */
    int buffered;     /* sets with arrays of their own: 1 where all sets share set 0's */
    size_t chunk;     /* components of the longest chunk */
    bool cuda_malloc; /* arrays come from cudaMalloc, else from the pool */
};

static size_t
chunks_of(const struct copies_state *state)
{
    return (state->run.call->n + state->chunk - 1) / state->chunk;
}

static void
shape(struct copies_state *state, const struct copies *how)
{
    const struct rung_call *call = state->run.call;
    state->how = how;
    state->streams = how->streams ? how->streams : 1;
    state->buffered = how->chunk_param ? state->streams : 1;
    if (how->chunk_param) {
        state->chunk = (size_t)call->params[how->chunk_param];
        if (state->chunk > call->n)
            state->chunk = call->n;
    } else {
        const size_t streams = (size_t)state->streams, grain = PART_BYTES / state->run.width;
        const size_t part = (call->n + streams - 1) / streams;
        state->chunk = streams == 1 ? call->n : (part + grain - 1) / grain * grain;
    }
}

static int
open_streams(struct copies_state *state, struct status *status)
{
    for (int i = 0; i < state->how->streams; i++) {
        cudaError_t error = cudaStreamCreate(&state->sets[i].stream);
        if (error != cudaSuccess) {
            state->sets[i].stream = NULL;
            return device_status(status, error, "cudaStreamCreate");
        }
    }
    return 0;
}

static void
close_streams(struct copies_state *state)
{
    for (int i = 0; i < state->how->streams; i++) {
        if (state->sets[i].stream)
            device_ignore(cudaStreamDestroy(state->sets[i].stream));
        state->sets[i].stream = NULL;
    }
}

/* Pool memory is ordered on the set's own stream. */
static int
open_arrays(struct copies_state *state, struct status *status)
{
    const size_t bytes = (state->how->chunk_param ? state->chunk : state->run.call->n) * state->run.width;
    for (int i = 0; i < state->buffered; i++)
        for (int j = 0; j < 3; j++) {
            struct component_set *set = &state->sets[i];
            if (!state->cuda_malloc) {
                if (pool_allocate(&state->run.scope, set->stream, bytes, &set->device[j], status) < 0)
                    return -1;
                continue;
            }
            cudaError_t error = cudaMalloc(&set->device[j], bytes);
            if (error != cudaSuccess) {
                set->device[j] = NULL;
                return device_status(status, error, "cudaMalloc");
            }
        }
    return 0;
}

static void
close_arrays(struct copies_state *state)
{
    for (int i = 0; i < state->buffered; i++)
        for (int j = 0; j < 3; j++) {
            struct component_set *set = &state->sets[i];
            if (!state->cuda_malloc)
                pool_release(set->stream, set->device[j]);
            else if (set->device[j])
                device_ignore(cudaFree(set->device[j]));
            set->device[j] = NULL;
        }
}

static int
queue_all(struct copies_state *state, struct status *status)
{
    const struct rung_call *call = state->run.call;
    const size_t width = state->run.width;
    for (size_t begin = 0, number = 0; begin < call->n; begin += state->chunk, number++) {
        const int turn = (int)(number % (size_t)state->streams);
        const struct component_set *arrays = &state->sets[state->buffered > 1 ? turn : 0];
        const size_t offset = begin * width, device_offset = state->how->chunk_param ? 0 : offset;
        const size_t left = call->n - begin;
        struct transfer_chunk chunk = {
            .a = (const char *)call->a + offset,
            .b = (const char *)call->b + offset,
            .c = (char *)call->c + offset,
            .count = left < state->chunk ? left : state->chunk,
            .number = number,
            .stream = state->sets[turn].stream,
            .stream_number = turn,
            .blocking = state->how->blocking,
        };
        for (int i = 0; i < 3; i++)
            chunk.device[i] = (char *)arrays->device[i] + device_offset;
        if ((state->timing.what == TIMED_WHOLE ? transfer_chunk_queue(&state->run, &chunk, status)
                                               : kernel_timing_queue(&state->timing, &state->run, &chunk, status)) < 0)
            return -1;
    }
    return 0;
}

/* Waits for all queued work, after an error too: then the caller may free and change its memory. */
static int
drain(struct copies_state *state, int result, struct status *status)
{
    /* The last blocking copy has waited for the work, but not for a timeline's event after it. */
    if (state->how->blocking && result == 0 && !state->run.call->timeline)
        return 0;
    if (state->how->device_wait) {
        const cudaError_t error = cudaDeviceSynchronize();
        return error == cudaSuccess || result < 0 ? result : device_status(status, error, "cudaDeviceSynchronize");
    }
    for (int i = 0; i < state->streams; i++)
        result = transfer_wait(state->sets[i].stream, result, status);
    return result;
}

static int
open_some(struct copies_state *state, bool streams, bool arrays, struct status *status)
{
    if (streams && open_streams(state, status) < 0)
        return -1;
    return arrays ? open_arrays(state, status) : 0;
}

int
copies_run(const struct rung *rung, const struct rung_call *call, struct status *status)
{
    const struct copies *how = rung->copies;
    if (call->n == 0)
        return 0;
    struct copies_state state = {0};
    struct timeline *timeline = call->timeline;
    int result = -1;
    if (transfer_run_enter(&state.run, rung, call, status) < 0)
        return transfer_run_leave(&state.run, -1, status);
    shape(&state, how);
    state.timing.what = how->timed_param ? (enum timed)call->params[how->timed_param] : TIMED_WHOLE;

    const bool asked = how->arrays == ARRAYS_AS_ASKED && call->params[PARAM_ALLOCATES];
    const bool each_call = how->arrays == ARRAYS_MALLOC_EACH_CALL || how->arrays == ARRAYS_POOL_EACH_CALL;
    const bool arrays_inside = asked || each_call, streams_inside = asked || how->streams_inside;
    state.cuda_malloc = asked || how->arrays == ARRAYS_MALLOC_EACH_CALL;
    if (timeline_open(timeline, 4 * chunks_of(&state) + 2, status) < 0 ||
        open_some(&state, !streams_inside, !arrays_inside, status) < 0 ||
        kernel_timing_open(&state.timing, &state.run, state.sets[0].stream, chunks_of(&state), status) < 0)
        goto done;

    state.run.begin = now_seconds();
    if (arrays_inside || streams_inside) {
        const size_t entry = timeline_begin_host(timeline, TIMELINE_ALLOCATE);
        const int opened = open_some(&state, streams_inside, arrays_inside, status);
        timeline_end_host(timeline, entry);
        if (opened < 0)
            goto done;
    }
    result = queue_all(&state, status);
    result = drain(&state, result, status);
    if (arrays_inside || streams_inside) {
        const size_t entry = timeline_begin_host(timeline, TIMELINE_FREE);
        if (arrays_inside)
            close_arrays(&state);
        if (streams_inside)
            close_streams(&state);
        timeline_end_host(timeline, entry);
    }
    state.run.seconds = now_seconds() - state.run.begin;
done:
    result = kernel_timing_close(&state.timing, state.sets[0].stream, result, &state.run.seconds, status);
    close_arrays(&state);
    close_streams(&state);
    return transfer_run_leave(&state.run, result, status);
}
