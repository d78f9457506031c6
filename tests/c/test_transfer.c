/* transfer.h and the transfer rungs on the CUDA-runtime double: every mix of pinned and ordinary
 * memory, under many legal orders of the queued work, and with every CUDA call failing in turn. */
#include "transfer/ring.h"
#include "transfer/transfer.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <pthread.h>

#include "base/fpflags.h"
#include "check.h"
#include "double.h"
#include "failures.h"
#include "lab/base/rung.h"
#include "lab/ladder/timeline.h"
#include "transfer_arrays.h"

extern const struct rung *const transfer_rungs[];

enum { MIB = 1 << 20 };

static void
adds_every_component_in_every_mix_of_memory(void)
{
    struct status status;
    unsigned fp_flags = 99;
    const size_t sizes[] = {1, 1000, 100001};
    for (int component = 0; component < COMPONENT_COUNT; component++)
        for (int pinned = 0; pinned < 8; pinned++)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
                struct arrays arrays = arrays_new(component, sizes[s], pinned);
                CHECK(transfer_add(&arrays.plan, NULL, &fp_flags, &status) == 0, "%s", status.text);
                CHECK(fp_flags == 0 && holds_sum(&arrays), "lane %d n %zu pinned %d", component, sizes[s], pinned);
                arrays_free(&arrays);
            }
    CHECK(double_faults() == 0 && live_now().device_blocks == 0);
}

/* What is small and pinned is read where it lies, unless copies are asked for. */
static void
pinned_memory_is_added_in_every_way(void)
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
        CHECK(fp_flags == 0 && holds_sum(&arrays) && double_faults() == 0, "case %zu", i);
        const long copies = double_calls("cudaMemcpyAsync");
        CHECK(cases[i].copies < 0 ? copies == 0 : copies >= cases[i].copies, "case %zu: %ld copies", i, copies);
        arrays_free(&arrays);
    }
}

/* Adds with an array whose first and last bytes are page-locked, so many of each. */
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
    CHECK(holds_sum(&arrays) && double_faults() == 0, "%zu and %zu bytes", first, second);
    CHECK((double_calls("cudaMemcpyAsync") == 0) == (pinned && way == TRANSFER_BEST), "%zu and %zu", first, second);
    CHECK(cudaHostUnregister(memory) == cudaSuccess);
    CHECK(!second || cudaHostUnregister(memory + BYTES - second) == cudaSuccess);
    arrays_free(&arrays);
}

static void
registered_memory_is_pinned_where_it_is_one_piece(void)
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

static void
a_part_of_pinned_memory_is_pinned(void)
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

static void
the_calibration_says_how_small_is_small(void)
{
    struct status status;
    unsigned fp_flags;
    struct arrays arrays = arrays_new(COMPONENT_F32, 1000, 7);
    transfer_set_zero_copy(3999);
    CHECK(transfer_add(&arrays.plan, NULL, &fp_flags, &status) == 0 && holds_sum(&arrays));
    CHECK(double_calls("cudaMemcpyAsync") > 0);
    double_reset(1);
    transfer_set_zero_copy(4000);
    CHECK(transfer_add(&arrays.plan, NULL, &fp_flags, &status) == 0 && holds_sum(&arrays));
    CHECK(double_calls("cudaMemcpyAsync") == 0);
    transfer_set_zero_copy(2 * MIB);
    arrays_free(&arrays);
}

/* Around the chunks of both ways: 128 KiB and 1 MiB staged; 512 KiB doubling to 16 MiB pinned. */
static void
chunk_boundaries_are_seamless(void)
{
    struct status status;
    unsigned fp_flags;
    const size_t bytes[] = {128 << 10, 512 << 10, MIB, 2 * MIB, 20 * MIB};
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        for (int pinned = 0; pinned < 8; pinned += 7)
            for (int more = -1; more <= 1; more++) {
                struct arrays arrays = arrays_new(COMPONENT_F32, bytes[i] / sizeof(float) + (size_t)more, pinned);
                CHECK(transfer_add(&arrays.plan, NULL, &fp_flags, &status) == 0, "%s", status.text);
                CHECK(holds_sum(&arrays), "%zu bytes %+d pinned %d", bytes[i], more, pinned);
                arrays_free(&arrays);
            }
}

/* Long enough for chunks that would go on growing, if nothing stopped them at 16 MiB. */
static void
chunks_stop_growing(void)
{
    struct status status;
    unsigned fp_flags;
    struct arrays arrays = arrays_new(COMPONENT_I64, 100 * MIB / sizeof(int64_t), 7);
    CHECK(transfer_add(&arrays.plan, NULL, &fp_flags, &status) == 0, "%s", status.text);
    CHECK(holds_sum(&arrays) && double_faults() == 0);
    arrays_free(&arrays);
}

static void
any_legal_order_gives_the_sum(void)
{
    struct status status;
    unsigned fp_flags;
    for (int pinned = 0; pinned < 8; pinned++) {
        struct arrays arrays = arrays_new(COMPONENT_I16, MIB + 7, pinned);
        for (unsigned seed = 0; seed < 12; seed++) {
            double_reset(seed);
            memset(arrays.c, 0xee, arrays.bytes);
            CHECK(transfer_add(&arrays.plan, NULL, &fp_flags, &status) == 0, "%s", status.text);
            CHECK(holds_sum(&arrays), "pinned %d seed %u", pinned, seed);
            CHECK(double_faults() == 0);
        }
        arrays_free(&arrays);
    }
}

static void
out_may_be_an_input(void)
{
    struct status status;
    unsigned fp_flags;
    for (int pinned = 0; pinned < 8; pinned += 7)
        for (int which = 0; which < 2; which++) {
            struct arrays arrays = arrays_new(COMPONENT_F64, MIB / 4 + 3, pinned);
            arrays.plan.c = which ? arrays.b : arrays.a;
            CHECK(transfer_add(&arrays.plan, NULL, &fp_flags, &status) == 0, "%s", status.text);
            CHECK(memcmp(arrays.plan.c, arrays.expected, arrays.bytes) == 0);
            arrays_free(&arrays);
        }
}

static void
floating_point_flags_come_back(void)
{
    struct status status;
    for (int pinned = 0; pinned < 8; pinned += 7)
        for (int which = 0; which < 3; which++) {
            const unsigned expected = (unsigned[]){FP_OVERFLOW, FP_INVALID, FP_OVERFLOW | FP_INVALID}[which];
            struct arrays arrays = arrays_new(COMPONENT_F32, MIB, pinned);
            float *a = arrays.a, *b = arrays.b;
            unsigned fp_flags = 0;
            if (expected & FP_OVERFLOW)
                a[MIB - 1] = b[MIB - 1] = 3e38f;
            if (expected & FP_INVALID) {
                a[7] = INFINITY;
                b[7] = -INFINITY;
            }
            CHECK(transfer_add(&arrays.plan, NULL, &fp_flags, &status) == 0, "%s", status.text);
            CHECK(fp_flags == expected, "%u for %u, pinned %d", fp_flags, expected, pinned);
            sums_fill(COMPONENT_F32, a, MIB, SALT_A);
            sums_fill(COMPONENT_F32, b, MIB, SALT_B);
            CHECK(transfer_add(&arrays.plan, NULL, &fp_flags, &status) == 0 && fp_flags == 0 && holds_sum(&arrays));
            arrays_free(&arrays);
        }
}

static void
flags_of_zero_copy_are_of_its_own_call(void)
{
    struct status status;
    unsigned fp_flags;
    struct arrays arrays = arrays_new(COMPONENT_F32, 100, 7);
    float *a = arrays.a, *b = arrays.b;
    a[99] = b[99] = 3e38f;
    CHECK(transfer_add(&arrays.plan, NULL, &fp_flags, &status) == 0 && fp_flags == FP_OVERFLOW);
    a[99] = b[99] = 1;
    CHECK(transfer_add(&arrays.plan, NULL, &fp_flags, &status) == 0 && fp_flags == 0);
    arrays_free(&arrays);
}

static void
nothing_is_asked_of_the_device_for_nothing(void)
{
    struct status status;
    unsigned fp_flags = 99;
    const struct plan plan = {.route = ROUTE_TRANSFER, .component = COMPONENT_F32, .device = -1};
    CHECK(transfer_add(&plan, NULL, &fp_flags, &status) == 0 && fp_flags == 0);
    CHECK(double_calls("cudaGetDeviceCount") == 0);
}

static void
a_small_transfer_takes_little(void)
{
    struct status status;
    unsigned fp_flags;
    struct arrays arrays = arrays_new(COMPONENT_F32, 256, 0);
    CHECK(transfer_add(&arrays.plan, NULL, &fp_flags, &status) == 0 && holds_sum(&arrays));
    CHECK(live_now().streams == 1 && live_now().pinned_blocks == 1);
    arrays_free(&arrays);
}

static void
each_device_is_served_in_turn(void)
{
    struct status status;
    unsigned fp_flags;
    int current = -1;
    struct arrays arrays = arrays_new(COMPONENT_I32, MIB, 0);
    for (int i = 0; i < 6; i++) {
        arrays.plan.device = i % 2;
        memset(arrays.c, 0xee, arrays.bytes);
        CHECK(transfer_add(&arrays.plan, NULL, &fp_flags, &status) == 0, "%s", status.text);
        CHECK(holds_sum(&arrays));
        CHECK(cudaGetDevice(&current) == cudaSuccess && current == 0);
    }
    arrays.plan.device = 2;
    CHECK(transfer_add(&arrays.plan, NULL, &fp_flags, &status) < 0 && status.code == STATUS_VALUE);
    arrays_free(&arrays);
}

static void
a_release_frees_all_and_the_next_transfer_starts_again(void)
{
    struct status status;
    unsigned fp_flags;
    transfer_release();
    for (int i = 0; i < 3; i++) {
        struct arrays arrays = arrays_new(COMPONENT_F32, MIB, 0);
        CHECK(transfer_add(&arrays.plan, NULL, &fp_flags, &status) == 0 && holds_sum(&arrays));
        arrays_free(&arrays);
        const struct transfer_counts kept = transfer_counts();
        CHECK(live_now().streams > 0 && live_now().pinned_blocks > 0);
        CHECK(kept.blocks == live_now().pinned_blocks && kept.bytes == kept.blocks * 2 * MIB);
        CHECK(transfer_release() == kept.bytes);
        CHECK(live_now().streams == 0 && live_now().pinned_blocks == 0 && live_now().device_blocks == 0);
        CHECK(transfer_counts().bytes == 0 && transfer_counts().blocks == 0 && transfer_release() == 0);
    }
}

static void
what_cannot_be_made_is_not_counted(void)
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
static void
a_release_leaves_the_ring_of_a_transfer_that_runs(void)
{
    struct status status;
    unsigned fp_flags;
    size_t released = 0;
    const struct transfer_observer observer = {release_meanwhile, nothing_is_left_to_do, &released};
    const struct transfer_options options = {.threads = 1, .observer = &observer};
    struct arrays arrays = arrays_new(COMPONENT_F32, MIB, 0);
    alarm(20);
    CHECK(transfer_add(&arrays.plan, &options, &fp_flags, &status) == 0 && holds_sum(&arrays));
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
        CHECK(transfer_add(&arrays.plan, NULL, &fp_flags, &status) == 0 && holds_sum(&arrays));
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

static void
threads_take_turns(void)
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

/* After an error nothing writes to the caller's memory any more, and what was refused before the start left it alone.
 */
static int
transfer(struct status *status)
{
    unsigned fp_flags;
    memset(failing.c, 0xee, failing.bytes);
    if (transfer_add(&failing.plan, NULL, &fp_flags, status) == 0) {
        CHECK(holds_sum(&failing));
        return 0;
    }
    if (!strstr(status->text, "output is undefined"))
        for (size_t i = 0; i < failing.bytes; i++)
            if (((unsigned char *)failing.c)[i] != 0xee) {
                CHECK(false, "%s: byte %zu was written", status->text, i);
                break;
            }
    memset(failing.c, 0x55, failing.bytes);
    double_synchronize(0);
    size_t changed = 0;
    for (size_t i = 0; i < failing.bytes; i++)
        changed += ((unsigned char *)failing.c)[i] != 0x55;
    CHECK(changed == 0, "%s: %zu bytes were written later", status->text, changed);
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

static void
every_failure_is_told_and_leaves_nothing(void)
{
    static const char *const calls[] = {
        "cudaPointerGetAttributes", "cudaStreamCreateWithFlags", "cudaMallocFromPoolAsync", "cudaMemsetAsync",
        "cudaMemcpyAsync",          "cudaLaunchKernel",          "cudaStreamSynchronize",
    };
    transfer_set_zero_copy(2 * MIB); /* so that 2.7 MB of pinned memory go by copies */
    for (int pinned = 0; pinned < 8; pinned += 7) {
        failing = arrays_new(COMPONENT_I32, 2 * MIB / 3 + 5, pinned);
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
            CHECK(fail_each_call(calls[i], cudaErrorUnknown, transfer_from_nothing) > 0, "%s", calls[i]);
        CHECK(fail_each_call("cudaGetDevice", cudaErrorUnknown, transfer) > 0);
        transfer_release();
        arrays_free(&failing);
    }
    static const char *const zero_copys[] = {"cudaPointerGetAttributes", "cudaStreamCreateWithFlags", "cudaHostAlloc",
                                             "cudaLaunchKernel", "cudaStreamSynchronize"};
    failing = arrays_new(COMPONENT_I32, 1000, 7);
    for (size_t i = 0; i < sizeof zero_copys / sizeof *zero_copys; i++)
        CHECK(fail_each_call(zero_copys[i], cudaErrorUnknown, transfer_from_nothing) > 0, "%s", zero_copys[i]);
    arrays_free(&failing);
    failing = arrays_new(COMPONENT_I32, MIB / 3 + 5, 0);
    CHECK(fail_each_call("cudaHostAlloc", cudaErrorMemoryAllocation, transfer_from_nothing) > 0);
    arrays_free(&failing);
}

static void
a_full_device_leaves_out_untouched(void)
{
    struct status status;
    failing = arrays_new(COMPONENT_I32, 3 * MIB / 4, 0);
    double_fail("cudaMallocFromPoolAsync", 2, cudaErrorMemoryAllocation, 1);
    CHECK(transfer(&status) < 0 && status.code == STATUS_MEMORY, "%s", status.text);
    CHECK(!strstr(status.text, "undefined"), "%s", status.text);
    double_reset(0);
    CHECK(transfer(&status) == 0);
    arrays_free(&failing);
}

static void
a_device_lost_on_the_way_says_that_out_is_undefined(void)
{
    struct status status;
    unsigned fp_flags;
    transfer_set_zero_copy(2 * MIB); /* so that 4 MiB of pinned memory go by copies */
    for (int pinned = 0; pinned < 8; pinned += 7) {
        struct arrays arrays = arrays_new(COMPONENT_I32, MIB, pinned);
        double_fail("cudaLaunchKernel", 2, cudaErrorLaunchFailure, 0);
        CHECK(transfer_add(&arrays.plan, NULL, &fp_flags, &status) < 0 && status.code == STATUS_DEVICE_LOST);
        CHECK(strstr(status.text, "output is undefined"), "%s", status.text);
        CHECK(transfer_add(&arrays.plan, NULL, &fp_flags, &status) < 0 && status.code == STATUS_DEVICE_LOST);
        double_reset(1);
        arrays_free(&arrays);
    }
}

static const struct rung *failing_rung;
static int failing_kernel = -1; /* the rung's usual one */
static bool failing_with_timeline;

static bool
is_hybrid(const struct rung *rung)
{
    return strcmp(rung->name, "hybrid") == 0;
}

/* Enough components of four bytes for all of a rung's calls: one thread of the hybrid adds 8 grains before the GPU
 * gets 16.
 */
static size_t
few_components(const struct rung *rung)
{
    return is_hybrid(rung) ? 2 * MIB / 4 : 1000;
}

static int
run_rung(struct status *status)
{
    struct rung_call call = {.component = failing.plan.component,
                             .a = failing.a,
                             .b = failing.b,
                             .c = failing.c,
                             .n = failing.plan.n,
                             .device = 1};
    rung_usual_params(failing_rung, &call);
    call.params[0] = failing_kernel >= 0 ? failing_kernel : call.params[0];
    if (is_hybrid(failing_rung)) {
        call.params[0] = 1;
        double_clock(1000000000); /* a second each time that it is read: the processor is slow */
    }
    if (strcmp(failing_rung->name, "streams2") == 0)
        call.params[2] = 1 << 16; /* components a chunk */
    call.timeline = failing_with_timeline ? timeline_new() : NULL;
    memset(failing.c, 0xee, failing.bytes);
    const int result = failing_rung->run(&call, status);
    double_clock(0);
    timeline_free(call.timeline);
    if (result < 0) {
        double_synchronize(1);
        return -1;
    }
    CHECK(holds_sum(&failing), "%s", failing_rung->name);
    return 0;
}

static void
rungs_add_and_fail_cleanly(void)
{
    static const char *const calls[] = {
        "cudaGetDevice",
        "cudaPointerGetAttributes",
        "cudaHostGetDevicePointer",
        "cudaDeviceGetAttribute",
        "cudaMalloc",
        "cudaMallocFromPoolAsync",
        "cudaMallocManaged",
        "cudaMemcpy",
        "cudaMemcpyAsync",
        "cudaLaunchKernel",
        "cudaStreamCreate",
        "cudaStreamCreateWithFlags",
        "cudaStreamSynchronize",
        "cudaDeviceSynchronize",
    };
    for (const struct rung *const *rung = transfer_rungs; *rung; rung++) {
        failing_rung = *rung;
        int told = 0;
        const int pinned = strcmp(failing_rung->name, "pageable") == 0 ? 0 : 7;
        failing = arrays_new(COMPONENT_F32, is_hybrid(failing_rung) ? 11 * MIB / 4 : 300001, pinned);
        for (unsigned seed = 0; seed < 2; seed++) {
            struct status status;
            double_reset(seed);
            CHECK(run_rung(&status) == 0, "%s: %s", failing_rung->name, status.text);
        }
        arrays_free(&failing);
        failing = arrays_new(COMPONENT_F32, few_components(failing_rung), pinned);
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
            told += fail_each_call(calls[i], cudaErrorUnknown, run_rung);
        CHECK(told >= 4, "%s: %d", failing_rung->name, told);
        CHECK(cudaGetLastError() == cudaSuccess, "%s", failing_rung->name);
        arrays_free(&failing);
    }
}

/* A kernel that accumulates, and a timeline: each has calls of its own. */
static void
sums_that_are_cleared_and_timelines_fail_cleanly(void)
{
    static const char *const calls[] = {"cudaMemsetAsync", "cudaEventCreate", "cudaEventRecord", "cudaEventSynchronize",
                                        "cudaEventElapsedTime"};
    static const int least[] = {1, 3, 3, 1, 2};
    failing_with_timeline = true;
    for (const struct rung *const *rung = transfer_rungs; *rung; rung++) {
        const char *first = (*rung)->params[0].name;
        const bool kernel = first && strcmp(first, "kernel") == 0;
        failing_rung = *rung;
        failing = arrays_new(COMPONENT_F32, few_components(failing_rung), 7);
        failing_kernel = kernel && strcmp((*rung)->name, "zero_copy") != 0 ? 6 : -1;
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
            const int told = fail_each_call(calls[i], cudaErrorUnknown, run_rung);
            CHECK(told >= least[i] || i == 0, "%s, %s: %d", (*rung)->name, calls[i], told);
            CHECK(cudaGetLastError() == cudaSuccess, "%s, %s", (*rung)->name, calls[i]);
        }
        arrays_free(&failing);
    }
}

static void
streams2_tells_of_a_failed_wait(void)
{
    failing = arrays_new(COMPONENT_F32, 1000, 7);
    for (const struct rung *const *rung = transfer_rungs; *rung; rung++)
        if (strcmp((*rung)->name, "streams2") == 0)
            failing_rung = *rung;
    CHECK(fail_each_call("cudaStreamSynchronize", cudaErrorUnknown, run_rung) == 2);
    arrays_free(&failing);
}

static void
rungs_on_pinned_memory_refuse_other_memory(void)
{
    struct status status;
    int refused = 0;
    failing = arrays_new(COMPONENT_F32, 1000, 3);
    for (const struct rung *const *rung = transfer_rungs; *rung; rung++) {
        failing_rung = *rung;
        if (run_rung(&status) < 0) {
            refused++;
            CHECK(status.code == STATUS_VALUE && strstr(status.text, "out is not"), "%s", status.text);
        }
    }
    CHECK(refused == 8, "%d", refused);
    arrays_free(&failing);
}

int
main(void)
{
    setenv("VECADD_NUM_THREADS", "3", 1); /* several sets of slots on any machine */
    RUN(adds_every_component_in_every_mix_of_memory);
    RUN(pinned_memory_is_added_in_every_way);
    RUN(registered_memory_is_pinned_where_it_is_one_piece);
    RUN(a_part_of_pinned_memory_is_pinned);
    RUN(the_calibration_says_how_small_is_small);
    RUN(chunk_boundaries_are_seamless);
    RUN(chunks_stop_growing);
    RUN(any_legal_order_gives_the_sum);
    RUN(out_may_be_an_input);
    RUN(floating_point_flags_come_back);
    RUN(flags_of_zero_copy_are_of_its_own_call);
    RUN(nothing_is_asked_of_the_device_for_nothing);
    RUN(a_small_transfer_takes_little);
    RUN(each_device_is_served_in_turn);
    RUN(a_release_frees_all_and_the_next_transfer_starts_again);
    RUN(what_cannot_be_made_is_not_counted);
    RUN(a_release_leaves_the_ring_of_a_transfer_that_runs);
    RUN(threads_take_turns);
    RUN(every_failure_is_told_and_leaves_nothing);
    RUN(a_full_device_leaves_out_untouched);
    RUN(a_device_lost_on_the_way_says_that_out_is_undefined);
    RUN(rungs_add_and_fail_cleanly);
    RUN(sums_that_are_cleared_and_timelines_fail_cleanly);
    RUN(streams2_tells_of_a_failed_wait);
    RUN(rungs_on_pinned_memory_refuse_other_memory);
    return check_report();
}
