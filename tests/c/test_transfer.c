/* transfer.h on the CUDA-runtime double: ways, chunks and legal orders of the queued work, what is kept between
 * transfers, and every CUDA call failing in turn. Which sums come out, tests/device/test_transfer.py says. */
#include "transfer/transfer.h"

#include <cuda_runtime_api.h>
#include <pthread.h>

#include "double.h"
#include "failures.h"
#include "tests.h"
#include "transfer_arrays.h"

enum { MIB = 1 << 20 };

/* Pinned memory of up to 16 MiB too. */
static const struct transfer_options by_copies = {.way = TRANSFER_COPIES};

/* What is small and pinned is read in place, unless copies are asked for. */
TEST(pinned_memory_is_added_in_every_way)
{
    struct status status;
    unsigned fp_flags = 99;
    const struct {
        enum transfer_way way;
        size_t n;
        long copies; /* at least; -1: none */
    } cases[] = {
        {TRANSFER_BEST, 1, -1},        {TRANSFER_BEST, 4 * MIB, -1},  {TRANSFER_BEST, 4 * MIB + 1, 3},
        {TRANSFER_COPIES, 1, 3},       {TRANSFER_COPIES, MIB / 4, 3}, {TRANSFER_ZERO_COPY, 1000, -1},
        {TRANSFER_ZERO_COPY, MIB, -1}, {TRANSFER_STAGED, MIB / 4, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arrays arrays = arrays_new(COMPONENT_F32, cases[i].n, 7);
        const struct transfer_options options = {.way = cases[i].way};
        double_reset((unsigned)i);
        CHECK(transfer_add(&arrays.plan, &options, &fp_flags, &status) == 0, "%s", status.text);
        CHECK(fp_flags == 0 && has_sum(&arrays) && double_faults() == 0, "case %zu", i);
        const long copies = double_calls("cudaMemcpyAsync");
        CHECK(cases[i].copies < 0 ? copies == 0 : copies >= cases[i].copies, "case %zu: %ld copies", i, copies);
        arrays_free(&arrays);
    }
}

/* Adds with an array whose first `first` and last `second` bytes are page-locked. */
static void
add_registered(size_t first, size_t second, enum transfer_way way, bool pinned)
{
    struct status status;
    unsigned fp_flags = 99;
    enum { N = 4096, BYTES = N * sizeof(float) };
    struct arrays arrays = arrays_new(COMPONENT_F32, N, 6);
    const struct transfer_options options = {.way = way};
    char *memory = arrays.a;
    double_reset(3);
    CHECK(cudaHostRegister(memory, first, cudaHostRegisterPortable) == cudaSuccess);
    CHECK(!second || cudaHostRegister(memory + BYTES - second, second, cudaHostRegisterPortable) == cudaSuccess);
    CHECK(transfer_memory_pinned(memory, BYTES) == pinned, "%zu and %zu bytes", first, second);
    CHECK(transfer_add(&arrays.plan, &options, &fp_flags, &status) == 0, "%s", status.text);
    CHECK(has_sum(&arrays) && double_faults() == 0, "%zu and %zu bytes", first, second);
    CHECK((double_calls("cudaMemcpyAsync") == 0) == (pinned && way == TRANSFER_BEST), "%zu and %zu", first, second);
    CHECK(cudaHostUnregister(memory) == cudaSuccess);
    CHECK(!second || cudaHostUnregister(memory + BYTES - second) == cudaSuccess);
    arrays_free(&arrays);
}

TEST(registered_memory_is_pinned_where_it_is_one_piece)
{
    enum { BYTES = 4096 * sizeof(float) };
    const enum transfer_way ways[] = {TRANSFER_BEST, TRANSFER_COPIES};
    for (int i = 0; i < 2; i++) {
        add_registered(BYTES, 0, ways[i], true);
        add_registered(BYTES - 1, 0, ways[i], false);
        add_registered(BYTES / 2, 0, ways[i], false);
        add_registered(BYTES / 2, BYTES / 2, ways[i], false); /* side by side */
        add_registered(BYTES - 1, 1, ways[i], false);
        add_registered(BYTES / 4, BYTES / 4, ways[i], false); /* ordinary memory between them */
    }
}

TEST(a_part_of_pinned_memory_is_pinned)
{
    struct status status;
    char *memory = NULL;
    CHECK(pinned_allocate(4096, (void **)&memory, &status) == 0, "%s", status.text);
    CHECK(transfer_memory_pinned(memory, 4096) && transfer_memory_pinned(memory, 1));
    CHECK(transfer_memory_pinned(memory + 1, 4095) && transfer_memory_pinned(memory + 4095, 1));
    CHECK(!transfer_memory_pinned(memory + 4095, 2) && !transfer_memory_pinned(memory, 4097));
    CHECK(!transfer_memory_pinned(memory - 1, 2) && !transfer_memory_pinned(memory + 4096, 1));
    pinned_release(memory, 4096);
}

/* Long enough for chunks that would go on growing, if nothing stopped them at 16 MiB. */
TEST(chunks_stop_growing)
{
    struct status status;
    unsigned fp_flags;
    struct arrays arrays = arrays_new(COMPONENT_I64, 100 * MIB / sizeof(int64_t), 7);
    CHECK(transfer_add(&arrays.plan, NULL, &fp_flags, &status) == 0, "%s", status.text);
    CHECK(has_sum(&arrays) && double_faults() == 0);
    arrays_free(&arrays);
}

TEST(any_legal_order_gives_the_sum)
{
    struct status status;
    unsigned fp_flags;
    for (int pinned = 0; pinned < 8; pinned++) {
        struct arrays arrays = arrays_new(COMPONENT_I16, MIB + 7, pinned);
        for (unsigned seed = 0; seed < 12; seed++) {
            double_reset(seed);
            memset(arrays.c, 0xee, arrays.bytes);
            CHECK(transfer_add(&arrays.plan, &by_copies, &fp_flags, &status) == 0, "%s", status.text);
            CHECK(has_sum(&arrays), "pinned %d seed %u", pinned, seed);
            CHECK(double_faults() == 0);
        }
        arrays_free(&arrays);
    }
}

TEST(a_small_transfer_takes_little)
{
    struct status status;
    unsigned fp_flags;
    struct arrays arrays = arrays_new(COMPONENT_F32, 256, 0);
    CHECK(transfer_add(&arrays.plan, NULL, &fp_flags, &status) == 0 && has_sum(&arrays));
    CHECK(live_now().streams == 1 && live_now().pinned_blocks == 1);
    arrays_free(&arrays);
}

TEST(a_release_frees_all_and_the_next_transfer_starts_again)
{
    struct status status;
    unsigned fp_flags;
    transfer_release();
    for (int i = 0; i < 3; i++) {
        struct arrays arrays = arrays_new(COMPONENT_F32, MIB, 0);
        CHECK(transfer_add(&arrays.plan, NULL, &fp_flags, &status) == 0 && has_sum(&arrays));
        arrays_free(&arrays);
        const struct transfer_counts kept = transfer_counts();
        CHECK(live_now().streams > 0 && live_now().pinned_blocks > 0);
        CHECK(kept.blocks == live_now().pinned_blocks && kept.bytes == kept.blocks * 2 * MIB);
        CHECK(transfer_release() == kept.bytes);
        CHECK(live_now().streams == 0 && live_now().pinned_blocks == 0 && live_now().device_blocks == 0);
        CHECK(transfer_counts().bytes == 0 && transfer_counts().blocks == 0 && transfer_release() == 0);
    }
}

TEST(what_cannot_be_made_is_not_counted)
{
    struct status status;
    unsigned fp_flags;
    struct arrays arrays = arrays_new(COMPONENT_F32, MIB, 0);
    double_fail("cudaHostAlloc", 2, cudaErrorMemoryAllocation, 1);
    CHECK(transfer_add(&arrays.plan, NULL, &fp_flags, &status) < 0);
    CHECK(transfer_counts().blocks == 1 && transfer_counts().blocks == live_now().pinned_blocks);
    double_reset(0);
    CHECK(transfer_release() == 2 * MIB && live_now().pinned_blocks == 0);
    arrays_free(&arrays);
}

static size_t
release_meanwhile(void *context, enum transfer_step step, int slot, void *stream, size_t chunk)
{
    size_t *released = context;
    (void)step, (void)slot, (void)stream, (void)chunk;
    *released += transfer_release();
    return 0;
}

static void
nothing_is_left_to_do(void *context, size_t token, void *stream)
{
    (void)context, (void)token, (void)stream;
}

/* A release that waited for the transfer would wait for itself: the alarm ends the test then. */
TEST(a_release_leaves_the_ring_of_a_transfer_that_runs)
{
    struct status status;
    unsigned fp_flags;
    size_t released = 0;
    const struct transfer_observer observer = {release_meanwhile, nothing_is_left_to_do, &released};
    const struct transfer_options options = {.threads = 1, .observer = &observer};
    struct arrays arrays = arrays_new(COMPONENT_F32, MIB, 0);
    alarm(20);
    CHECK(transfer_add(&arrays.plan, &options, &fp_flags, &status) == 0 && has_sum(&arrays));
    alarm(0);
    CHECK(released == 0 && transfer_release() > 0 && transfer_release() == 0 && double_faults() == 0);
    arrays_free(&arrays);
}

static void *
transfer_again_and_again(void *argument)
{
    const int pinned = *(const int *)argument;
    struct status status;
    unsigned fp_flags;
    for (int i = 0; i < 10; i++) {
        struct arrays arrays = arrays_new(COMPONENT_I32, MIB / 4 + 1, pinned);
        CHECK(transfer_add(&arrays.plan, NULL, &fp_flags, &status) == 0 && has_sum(&arrays));
        arrays_free(&arrays);
    }
    return NULL;
}

static void *
release_again_and_again(void *argument)
{
    (void)argument;
    for (int i = 0; i < 100; i++) {
        transfer_release();
        transfer_counts();
        usleep(100);
    }
    return NULL;
}

TEST(threads_take_turns)
{
    pthread_t threads[4];
    int pinned[3] = {0, 7, 2};
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, transfer_again_and_again, &pinned[i]) == 0);
    CHECK(pthread_create(&threads[3], NULL, release_again_and_again, NULL) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK(double_faults() == 0);
    transfer_release();
    CHECK(transfer_counts().bytes == 0 && live_now().pinned_blocks == 0 && live_now().streams == 0);
}

static struct arrays failing;
static const struct transfer_options *options = &by_copies; /* of transfer() */

/* After an error nothing writes to the caller's memory any more, and what was refused before the start left it alone.
 */
static int
transfer(struct status *status)
{
    unsigned fp_flags;
    memset(failing.c, 0xee, failing.bytes);
    if (transfer_add(&failing.plan, options, &fp_flags, status) == 0) {
        CHECK(has_sum(&failing));
        return 0;
    }
    if (!strstr(status->text, "output is undefined"))
        CHECK(all_are(failing.c, failing.bytes, 0xee), "%s: it was written", status->text);
    memset(failing.c, 0x55, failing.bytes);
    double_synchronize(0);
    CHECK(all_are(failing.c, failing.bytes, 0x55), "%s: it was written later", status->text);
    return -1;
}

static int
transfer_from_nothing(struct status *status)
{
    transfer_release();
    const int result = transfer(status);
    transfer_release();
    return result;
}

TEST(every_failure_is_told_and_leaves_nothing)
{
    static const char *const calls[] = {
        "cuPointerGetAttributes", "cudaStreamCreateWithFlags", "cudaMallocFromPoolAsync", "cudaMemsetAsync",
        "cudaMemcpyAsync",        "cudaLaunchKernel",          "cudaStreamSynchronize",
    };
    for (int pinned = 0; pinned < 8; pinned += 7) {
        struct status status;
        failing = arrays_new(COMPONENT_I32, (pinned ? 5 * MIB / 4 : 5 * MIB / 8) / sizeof(int32_t) + 5, pinned);
        double_reset(0);
        CHECK(transfer(&status) == 0, "%s", status.text);
        CHECK(double_calls("cudaLaunchKernel") >= 3, "several chunks, pinned %d", pinned);
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
            CHECK(fail_each_call(calls[i], cudaErrorUnknown, transfer_from_nothing) > 0, "%s", calls[i]);
        CHECK(fail_each_call("cudaGetDevice", cudaErrorUnknown, transfer) > 0);
        transfer_release();
        arrays_free(&failing);
    }
    static const char *const zero_copys[] = {"cuPointerGetAttributes", "cudaStreamCreateWithFlags", "cudaHostAlloc",
                                             "cudaLaunchKernel", "cudaStreamSynchronize"};
    options = NULL; /* by zero-copy */
    failing = arrays_new(COMPONENT_I32, 1000, 7);
    for (size_t i = 0; i < sizeof zero_copys / sizeof *zero_copys; i++)
        CHECK(fail_each_call(zero_copys[i], cudaErrorUnknown, transfer_from_nothing) > 0, "%s", zero_copys[i]);
    arrays_free(&failing);
    options = &by_copies;
    failing = arrays_new(COMPONENT_I32, 5 * MIB / 8 / sizeof(int32_t) + 5, 0);
    CHECK(fail_each_call("cudaHostAlloc", cudaErrorMemoryAllocation, transfer_from_nothing) > 0);
    arrays_free(&failing);
}
