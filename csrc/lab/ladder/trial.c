#include "lab/ladder/trial.h"

#include <cuda_runtime_api.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/lab/launches.h"
#include "gpu/device.h"
#include "gpu/memory.h"
#include "gpu/state.h"

/* A GPU without room for a kernel, for a while: if work queued after a call is over meanwhile, it has not waited for
 * the call's kernels. */
enum { COPY_OF_SUM, COPY_OF_OUT, COPIES };

struct blockade {
    cudaStream_t stream;
    struct blockade_flags *flags; /* page-locked, and so are those below */
    unsigned *here, blocks;
    void *copies[COPIES];
    size_t bytes;
};

/* The kernels write them while the host looks. */
static unsigned
now(const unsigned *flag)
{
    return *(const volatile unsigned *)flag;
}

static int
make_blockade(struct blockade *blockade, int device, const void *sum, struct status *status)
{
    cudaError_t error = blockade_size(device, &blockade->blocks);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&blockade->stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error =
            cudaHostAlloc((void **)&blockade->flags,
                          sizeof *blockade->flags + blockade->blocks * sizeof *blockade->here, cudaHostAllocDefault);
    for (int i = 0; i < COPIES && error == cudaSuccess; i++)
        error = cudaHostAlloc(&blockade->copies[i], blockade->bytes, cudaHostAllocDefault);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaHostAlloc");
    blockade->here = (unsigned *)(blockade->flags + 1);
    memset(blockade->flags, 0, sizeof *blockade->flags + blockade->blocks * sizeof *blockade->here);
    return device_copy(device, NULL, COPY_OUT, blockade->copies[COPY_OF_SUM], sum, blockade->bytes, status);
}

static bool
all_here(const struct blockade *blockade)
{
    for (unsigned i = 0; i < blockade->blocks; i++)
        if (!now(&blockade->here[i]))
            return false;
    return true;
}

/* Fills the GPU. Where another process has a part of it, the time goes by before all blocks run. */
static int
fill(const struct blockade *blockade, unsigned cycles, struct status *status)
{
    if (CUDA_CALL(status, blockade_launch, blockade->flags, blockade->here, blockade->blocks, cycles,
                  blockade->stream) < 0)
        return -1;
    while (!all_here(blockade) && !now(&blockade->flags->expired)) {
        const cudaError_t error = cudaStreamQuery(blockade->stream);
        if (error != cudaSuccess && error != cudaErrorNotReady)
            return device_status(status, error, "cudaStreamQuery");
        device_ignore(error); /* the calling thread's last error, which the call's own code may read */
    }
    return 0;
}

/* Lets kernels run, waits for the device, and sets *blockade, which may be NULL, to NULL. */
static void
blockade_end(struct blockade **blockade)
{
    struct blockade *ended = *blockade;
    *blockade = NULL;
    if (!ended)
        return;
    if (ended->flags)
        *(volatile unsigned *)&ended->flags->open = 1;
    device_ignore(cudaDeviceSynchronize());
    if (ended->flags)
        device_ignore(cudaFreeHost(ended->flags));
    for (int i = 0; i < COPIES; i++)
        if (ended->copies[i])
            device_ignore(cudaFreeHost(ended->copies[i]));
    if (ended->stream)
        device_ignore(cudaStreamDestroy(ended->stream));
    free(ended);
}

/* Fills the GPU, which is at rest, for at most `cycles` cycles of its clock. `sum`, `bytes` of device memory, is what
 * an array is to be compared with. Waits. *blockade is NULL where the GPU could not be filled, and after a failure: -1
 * with *status set. The thread is on the device. */
static int
blockade_begin(struct blockade **blockade, int device, const void *sum, size_t bytes, unsigned cycles,
               struct status *status)
{
    struct blockade *made = *blockade = calloc(1, sizeof *made);
    if (!made)
        return status_set(status, STATUS_MEMORY, "out of memory");
    made->bytes = bytes;
    const int failed = make_blockade(made, device, sum, status) < 0 || fill(made, cycles, status) < 0 ? -1 : 0;
    if (failed || now(&made->flags->expired))
        blockade_end(blockade);
    return failed;
}

/* Copies `out` to the host in the order of the legacy default stream, and waits until that is over or the time is.
 * *unordered is whether it was over first and out was not the sum. Returns 0, or -1 with *status set. */
static int
blockade_look(const struct blockade *blockade, const void *out, bool *unordered, struct status *status)
{
    cudaError_t error =
        cudaMemcpyAsync(blockade->copies[COPY_OF_OUT], out, blockade->bytes, cudaMemcpyDeviceToHost, NULL);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaMemcpyAsync");
    do
        error = cudaStreamQuery(NULL);
    while (error == cudaErrorNotReady && !now(&blockade->flags->expired));
    if (error != cudaSuccess && error != cudaErrorNotReady)
        return device_status(status, error, "cudaStreamQuery");
    device_ignore(error);
    *unordered = error == cudaSuccess && !now(&blockade->flags->expired) &&
                 memcmp(blockade->copies[COPY_OF_OUT], blockade->copies[COPY_OF_SUM], blockade->bytes) != 0;
    return 0;
}

enum { POISON = 0xa5, LARGEST_WORD = 8 };
enum { LATER = 300 * 1000 * 1000 }; /* ns in which another thread has queued its work, on a busy machine too */

/* Of each region, then of out at rest and later. */
enum { OUT = TRIAL_REGIONS - 2, OUT_AT_REST = TRIAL_REGIONS, OUT_LATER, COUNTS };

static int
rest(struct status *status)
{
    return cuda_result(status, (int)cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

static int
copy(const struct trial *trial, void *target, const void *source, size_t bytes, struct status *status)
{
    return device_copy(trial->device, NULL, COPY_WITHIN, target, source, bytes, status);
}

/* What is in a and b until the GPU comes to the call, and poison everywhere else. */
static int
prepare(const struct trial *trial, struct status *status)
{
    if (device_fill(trial->device, NULL, trial->memory, POISON, trial->memory_bytes, status) < 0)
        return -1;
    for (size_t i = 0; i < trial->poke_count; i++)
        for (int array = 0; array < TRIAL_ARRAYS; array++) {
            const size_t at = (size_t)array * trial->bytes + trial->pokes[i] * trial->itemsize;
            if (copy(trial, trial->now + at, trial->donor + at, trial->itemsize, status) < 0)
                return -1;
        }
    for (int array = 0; trial->before && array < TRIAL_ARRAYS - 1; array++)
        if (copy(trial, trial->memory + trial->start[array], trial->before + (size_t)array * trial->bytes, trial->bytes,
                 status) < 0)
            return -1;
    /* Fails on a GPU that cannot keep lines in its L2: there are none then. */
    device_ignore(cudaCtxResetPersistingL2Cache());
    return rest(status);
}

/* Operands that are ready only when the GPU comes to them, and an L2 as an addition of other arrays leaves it: an L2
 * without lines that are still to be written back would take a sum of its size for nothing. */
static int
bring_operands(const struct trial *trial, struct status *status)
{
    for (int array = 0; array < TRIAL_ARRAYS - 1; array++)
        if (copy(trial, trial->memory + trial->start[array], trial->now + (size_t)array * trial->bytes, trial->bytes,
                 status) < 0)
            return -1;
    if (!trial->flush)
        return 0;
    return CUDA_CALL(status, limits_merge_launch, trial->flush, trial->flush_bytes, NULL);
}

static int
make(struct trial *trial, const struct device_scope *scope, struct status *status)
{
    struct comparison clear[COUNTS];
    memset(clear, 0, sizeof clear);
    for (int i = 0; i < COUNTS; i++)
        clear[i].first = ULLONG_MAX;
    if (pool_allocate(scope, NULL, sizeof clear, &trial->counts, status) < 0 ||
        device_copy(trial->device, NULL, COPY_IN, trial->counts, clear, sizeof clear, status) < 0)
        return -1;
    cudaError_t error = cudaEventCreate((cudaEvent_t *)&trial->begin);
    if (error == cudaSuccess)
        error = cudaEventCreate((cudaEvent_t *)&trial->end);
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaEventCreate");
}

static int
queue_before(struct trial *trial, const struct device_scope *scope, struct status *status)
{
    if (rest(status) < 0 || make(trial, scope, status) < 0 || (!trial->bare && prepare(trial, status) < 0))
        return -1;
    cudaError_t error = trial->delay ? delay_launch(trial->delay, NULL) : cudaSuccess;
    if (error != cudaSuccess)
        return device_status(status, error, "delay_launch");
    if (!trial->bare && bring_operands(trial, status) < 0)
        return -1;
    if (trial->blockade_cycles && !trial->bare) {
        const unsigned char *sum = trial->now + (size_t)(TRIAL_ARRAYS - 1) * trial->bytes;
        if (rest(status) < 0 ||
            blockade_begin(&trial->blockade, trial->device, sum, trial->bytes, trial->blockade_cycles, status) < 0)
            return -1;
    }
    return CUDA_CALL(status, cudaEventRecord, trial->begin, NULL);
}

int
trial_begin(struct trial *trial, struct status *status)
{
    struct device_scope scope;
    trial->begin = trial->end = trial->counts = NULL;
    trial->blockade = NULL;
    if (device_enter_relaxed(&scope, trial->device, status) < 0)
        return -1;
    const int result = queue_before(trial, &scope, status);
    device_leave(&scope);
    if (result < 0)
        trial_close(trial);
    return result;
}

void
trial_close(struct trial *trial)
{
    struct device_scope scope;
    struct status ignored;
    if (device_enter_relaxed(&scope, trial->device, &ignored) < 0)
        return;
    blockade_end(&trial->blockade);
    device_ignore(cudaDeviceSynchronize());
    if (trial->begin)
        device_ignore(cudaEventDestroy(trial->begin));
    if (trial->end)
        device_ignore(cudaEventDestroy(trial->end));
    pool_release(NULL, trial->counts);
    trial->begin = trial->end = trial->counts = NULL;
    device_leave(&scope);
}

/* Queues the comparison of `bytes` of the memory into the counts at `slot`. */
static int
compare(const struct trial *trial, size_t at, size_t bytes, const struct compare_call *with, int slot,
        struct status *status)
{
    struct compare_call call = *with;
    call.found = trial->memory + at;
    call.bytes = bytes;
    call.word = trial->itemsize < LARGEST_WORD ? (unsigned)trial->itemsize : LARGEST_WORD;
    call.poison = POISON;
    call.counts = (struct comparison *)trial->counts + slot;
    return CUDA_CALL(status, compare_launch, &call, NULL);
}

static int
compare_out(const struct trial *trial, int slot, struct status *status)
{
    const size_t sum = (size_t)(TRIAL_ARRAYS - 1) * trial->bytes;
    const struct compare_call with = {.right = trial->now + sum,
                                      .before = trial->before ? trial->before + sum : NULL,
                                      .last = trial->last ? trial->last + sum : NULL};
    return compare(trial, trial->start[TRIAL_ARRAYS - 1], trial->bytes, &with, slot, status);
}

/* Out first: what another stream adds has the least time for it. */
static int
compare_all(const struct trial *trial, struct status *status)
{
    static const struct compare_call poison = {.right = NULL};
    size_t at = 0;
    if (compare_out(trial, OUT, status) < 0)
        return -1;
    for (int array = 0; array < TRIAL_ARRAYS; array++) {
        const struct compare_call with = {.right = trial->now + (size_t)array * trial->bytes};
        const bool is_out = array == TRIAL_ARRAYS - 1;
        if (compare(trial, at, trial->start[array] - at, &poison, 2 * array, status) < 0 ||
            (!is_out && compare(trial, trial->start[array], trial->bytes, &with, 2 * array + 1, status) < 0))
            return -1;
        at = trial->start[array] + trial->bytes;
    }
    return compare(trial, at, trial->memory_bytes - at, &poison, TRIAL_REGIONS - 1, status);
}

static struct trial_count
count_of(const struct trial *trial, const struct comparison *found)
{
    const size_t words = trial->itemsize > LARGEST_WORD ? trial->itemsize / LARGEST_WORD : 1;
    return (struct trial_count){.wrong = found->wrong,
                                .first = found->wrong ? found->first / words : 0,
                                .unwritten = found->unwritten,
                                .before = found->before,
                                .last = found->last};
}

static int
fetch(const struct trial *trial, struct comparison found[COUNTS], struct status *status)
{
    return device_copy(trial->device, NULL, COPY_OUT, found, trial->counts, COUNTS * sizeof *found, status);
}

/* When the sum that was missing comes, if it does: where another stream makes it, and where another thread queues it.
 */
static int
look_again(const struct trial *trial, struct trial_result *result, struct status *status)
{
    struct comparison found[COUNTS];
    const struct timespec pause = {.tv_nsec = LATER};
    if (rest(status) < 0 || compare_out(trial, OUT_AT_REST, status) < 0)
        return -1;
    nanosleep(&pause, NULL);
    if (rest(status) < 0 || compare_out(trial, OUT_LATER, status) < 0 || fetch(trial, found, status) < 0)
        return -1;
    result->at_rest = count_of(trial, &found[OUT_AT_REST]);
    result->later = count_of(trial, &found[OUT_LATER]);
    return 0;
}

static int
finish(struct trial *trial, struct trial_result *result, struct status *status)
{
    struct comparison found[COUNTS];
    float milliseconds = 0;
    if (CUDA_CALL(status, cudaEventRecord, trial->end, NULL) < 0)
        return -1;
    if (trial->blockade) {
        const unsigned char *out = trial->memory + trial->start[TRIAL_ARRAYS - 1];
        if (blockade_look(trial->blockade, out, &result->unordered, status) < 0)
            return -1;
        blockade_end(&trial->blockade);
    }
    if (!trial->bare && compare_all(trial, status) < 0)
        return -1;
    cudaError_t error = stream_wait(NULL);
    if (error == cudaSuccess)
        error = cudaEventElapsedTime(&milliseconds, trial->begin, trial->end);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaEventElapsedTime");
    result->seconds = milliseconds / 1e3;
    device_ignore(cudaDeviceGetLimit(&result->persisting, cudaLimitPersistingL2CacheSize));
    if (trial->bare)
        return 0;
    if (fetch(trial, found, status) < 0)
        return -1;
    for (int region = 0; region < TRIAL_REGIONS; region++)
        result->regions[region] = count_of(trial, &found[region]);
    return result->regions[OUT].wrong ? look_again(trial, result, status) : 0;
}

int
trial_end(struct trial *trial, struct trial_result *result, struct status *status)
{
    struct device_scope scope;
    *result = (struct trial_result){0};
    int failed = device_enter_relaxed(&scope, trial->device, status);
    if (failed == 0) {
        failed = finish(trial, result, status);
        device_leave(&scope);
    }
    trial_close(trial);
    return failed;
}
