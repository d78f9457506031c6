#include <cuda_runtime_api.h>

#include "base/now.h"
#include "cuda/lab/launches.h"
#include "gpu/device.h"
#include "lab/ladder/transfer_rung.h"

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
//     kernels_paid  the same, and other memory is read behind each kernel until its sum has left the L2. What that
//                   reading takes behind a kernel that does nothing is subtracted, and the empty kernel added.
//
// An event on each side of a kernel counts its launch too, some 2.8 us on an H200.

enum { TIMED_PARAM = 1, CHUNK_PARAM = 2, CHUNK = 1 << 22 };
enum { TIMED_WHOLE, TIMED_KERNELS, TIMED_COLD, TIMED_PAID };

static const char *const timed_names[] = {"whole", "kernels", "kernels_cold", "kernels_paid", NULL};

/* What is timed of a chunk, as stream numbers of the rung's own timeline. */
enum { WITH_KERNEL, WITHOUT_KERNEL, EMPTY_KERNEL };

/* Other memory: parts that are read in turn, so that no reading finds in the L2 what the one before has left. Each
 * takes the place of all that the L2 holds. */
enum { PARTS = 3, L2_TIMES = 2, SINK_BYTES = 256 };

struct chunks_state {
    struct transfer_run run;
    int timed;
    cudaStream_t stream;
    void *device[3];
    char *other; /* the sink, then PARTS parts; NULL where none is read */
    size_t part; /* bytes */
    struct timeline *kernels;
};

static int
open_other(struct chunks_state *state, struct status *status)
{
    int l2 = 0;
    cudaError_t error = cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, state->run.scope.device);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaDeviceGetAttribute");
    state->part = L2_TIMES * (size_t)l2;
    const size_t bytes = SINK_BYTES + PARTS * state->part;
    void *memory = NULL;
    if (pool_allocate(&state->run.scope, state->stream, bytes, &memory, status) < 0)
        return -1;
    state->other = memory;
    error = cudaMemsetAsync(memory, 0, bytes, state->stream);
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaMemsetAsync");
}

static int
open_state(struct chunks_state *state, size_t chunk, size_t chunks, struct status *status)
{
    cudaError_t error = cudaStreamCreate(&state->stream);
    if (error != cudaSuccess) {
        state->stream = NULL;
        return device_status(status, error, "cudaStreamCreate");
    }
    for (int i = 0; i < 3; i++)
        if (pool_allocate(&state->run.scope, state->stream, chunk * state->run.width, &state->device[i], status) < 0)
            return -1;
    if (state->timed >= TIMED_COLD && open_other(state, status) < 0)
        return -1;
    if (state->timed != TIMED_WHOLE) {
        state->kernels = timeline_new();
        if (!state->kernels)
            return status_set(status, STATUS_MEMORY, "there is no memory for a timeline of %zu kernels", chunks);
        if (timeline_open(state->kernels, 3 * chunks, status) < 0)
            return -1;
    }
    return timeline_open(state->run.call->timeline, 4 * chunks, status);
}

static void
close_state(struct chunks_state *state)
{
    for (int i = 0; i < 3; i++)
        pool_release(state->stream, state->device[i]);
    pool_release(state->stream, state->other);
    if (state->stream)
        device_ignore(cudaStreamDestroy(state->stream));
    timeline_free(state->kernels);
}

/* Reads so many bytes of a part of the other memory. */
static int
read_other(const struct chunks_state *state, int part, size_t bytes, struct status *status)
{
    const char *from = state->other + SINK_BYTES + (size_t)part * state->part;
    const cudaError_t error = limits_read_launch(from, bytes, (unsigned *)state->other, state->stream);
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaLaunchKernel");
}

/* The reading behind a kernel that does next to nothing, and such a kernel alone. */
static int
queue_references(const struct chunks_state *state, size_t number, struct status *status)
{
    for (int what = WITHOUT_KERNEL; what <= EMPTY_KERNEL; what++) {
        const size_t entry = timeline_begin(state->kernels, TIMELINE_KERNEL, what, state->stream, number);
        if (read_other(state, 0, sizeof(int) * 4, status) < 0 ||
            (what == WITHOUT_KERNEL && read_other(state, 2, state->part, status) < 0))
            return -1;
        timeline_end(state->kernels, entry, state->stream);
    }
    return 0;
}

static int
queue_chunk(const struct chunks_state *state, const struct transfer_chunk *chunk, struct status *status)
{
    const bool paid = state->timed == TIMED_PAID;
    if (transfer_chunk_up(&state->run, chunk, status) < 0 ||
        (state->other && read_other(state, 0, state->part, status) < 0))
        return -1;
    const size_t entry = timeline_begin(state->kernels, TIMELINE_KERNEL, WITH_KERNEL, state->stream, chunk->number);
    if (transfer_chunk_add(&state->run, chunk, status) < 0 || (paid && read_other(state, 1, state->part, status) < 0))
        return -1;
    timeline_end(state->kernels, entry, state->stream);
    if (paid && queue_references(state, chunk->number, status) < 0)
        return -1;
    return transfer_chunk_down(&state->run, chunk, status);
}

static int
queue_all(const struct chunks_state *state, size_t most, struct status *status)
{
    const struct rung_call *call = state->run.call;
    for (size_t begin = 0, number = 0; begin < call->n; begin += most, number++) {
        const size_t offset = begin * state->run.width, left = call->n - begin;
        const struct transfer_chunk chunk = {
            .a = (const char *)call->a + offset,
            .b = (const char *)call->b + offset,
            .c = (char *)call->c + offset,
            .device = {state->device[0], state->device[1], state->device[2]},
            .count = left < most ? left : most,
            .number = number,
            .stream = state->stream,
        };
        if (queue_chunk(state, &chunk, status) < 0)
            return -1;
    }
    return 0;
}

/* Closes the rung's own timeline and gives the seconds of its kernels. */
static int
read_kernels(struct chunks_state *state, int result, struct status *status)
{
    if (timeline_close(state->kernels, result == 0, status) < 0)
        return -1;
    if (result < 0 || state->timed == TIMED_WHOLE)
        return result;
    const struct timeline_entry *entries;
    const size_t count = timeline_entries(state->kernels, &entries);
    state->run.seconds = 0;
    for (size_t i = 0; i < count; i++) {
        const double seconds = entries[i].end - entries[i].begin;
        state->run.seconds += entries[i].stream == WITHOUT_KERNEL ? -seconds : seconds;
    }
    return 0;
}

static int
run_chunks_reused(const struct rung *rung, const struct rung_call *call, struct status *status)
{
    struct chunks_state state = {.timed = call->params[TIMED_PARAM]};
    if (call->n == 0)
        return 0;
    int result = -1;
    const size_t asked = (size_t)call->params[CHUNK_PARAM], most = asked < call->n ? asked : call->n;
    if (transfer_run_enter(&state.run, rung, call, status) < 0 ||
        open_state(&state, most, (call->n + most - 1) / most, status) < 0)
        goto done;

    state.run.begin = now_seconds();
    result = queue_all(&state, most, status);
    const cudaError_t error = stream_wait(state.stream);
    if (error != cudaSuccess && result == 0)
        result = device_status(status, error, "cudaStreamSynchronize");
    state.run.seconds = now_seconds() - state.run.begin;
done:
    result = read_kernels(&state, result, status);
    close_state(&state);
    return transfer_run_leave(&state.run, result, status);
}

const struct rung rung_chunks_reused = {
    .name = "chunks_reused",
    .kind = RUNG_TRANSFER,
    .after = "stream1_pinned",
    .changes = "chunks through three device buffers, again and again; timed as a whole, or each kernel by itself",
    .params = {KERNEL_PARAM(KERNEL_CHUNKED),
               {"timed", "0 whole, 1 kernels, 2 kernels_cold, 3 kernels_paid", 0, TIMED_COLD, TIMED_PAID, timed_names},
               {"chunk", "elements a chunk; a complex one counts twice", 1 << 10, CHUNK, 1 << 28}},
    .by_name = true, /* its usual time is not that of a round trip */
    .memory = RUNG_MEMORY_PINNED,
    .run = run_chunks_reused,
};
