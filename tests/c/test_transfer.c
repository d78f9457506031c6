/* transfer.h and the transfer rungs on the CUDA-runtime double: every mix of pinned and ordinary
 * memory, under many legal orders of the queued work, and with every CUDA call failing in turn. */
#include "transfer/transfer.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <pthread.h>

#include "base/dtype.h"
#include "check.h"
#include "double.h"
#include "failures.h"
#include "lab/base/rung.h"
#include "lab/ladder/timeline.h"
#include "transfer_arrays.h"

extern const struct rung *const transfer_rungs[];

enum { MIB = 1 << 20 };

/* Pinned memory of up to 16 MiB too. */
static const struct transfer_options by_copies = {.way = TRANSFER_COPIES};

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
                CHECK(fp_flags == 0 && holds_sum(&arrays), "component %d n %zu pinned %d", component, sizes[s], pinned);
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
                CHECK(transfer_add(&arrays.plan, &by_copies, &fp_flags, &status) == 0, "%s", status.text);
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
            CHECK(transfer_add(&arrays.plan, &by_copies, &fp_flags, &status) == 0, "%s", status.text);
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
            CHECK(transfer_add(&arrays.plan, &by_copies, &fp_flags, &status) == 0, "%s", status.text);
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
            CHECK(transfer_add(&arrays.plan, &by_copies, &fp_flags, &status) == 0, "%s", status.text);
            CHECK(fp_flags == expected, "%u for %u, pinned %d", fp_flags, expected, pinned);
            sums_fill(COMPONENT_F32, a, MIB, SALT_A);
            sums_fill(COMPONENT_F32, b, MIB, SALT_B);
            CHECK(transfer_add(&arrays.plan, &by_copies, &fp_flags, &status) == 0 && fp_flags == 0 &&
                  holds_sum(&arrays));
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
for_nothing_it_is_only_asked_whether_the_device_is_there(void)
{
    struct status status;
    unsigned fp_flags = 99;
    struct plan plan = {.route = ROUTE_TRANSFER, .component = COMPONENT_F32, .device = -1};
    CHECK(transfer_add(&plan, NULL, &fp_flags, &status) == 0 && fp_flags == 0);
    CHECK(double_calls("cudaGetDeviceCount") == 1 && double_calls("cudaMemPoolCreate") == 0);
    plan.device = 99;
    CHECK(transfer_add(&plan, NULL, &fp_flags, &status) < 0 && status.code == STATUS_VALUE);
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

int
main(void)
{
    setenv("VECADD_NUM_THREADS", "3", 1); /* several sets of slots on any machine */
    RUN(adds_every_component_in_every_mix_of_memory);
    RUN(pinned_memory_is_added_in_every_way);
    RUN(registered_memory_is_pinned_where_it_is_one_piece);
    RUN(a_part_of_pinned_memory_is_pinned);
    RUN(chunk_boundaries_are_seamless);
    RUN(chunks_stop_growing);
    RUN(any_legal_order_gives_the_sum);
    RUN(out_may_be_an_input);
    RUN(floating_point_flags_come_back);
    RUN(flags_of_zero_copy_are_of_its_own_call);
    RUN(for_nothing_it_is_only_asked_whether_the_device_is_there);
    RUN(a_small_transfer_takes_little);
    RUN(each_device_is_served_in_turn);
    RUN(a_release_frees_all_and_the_next_transfer_starts_again);
    RUN(what_cannot_be_made_is_not_counted);
    RUN(a_release_leaves_the_ring_of_a_transfer_that_runs);
    RUN(threads_take_turns);
    return check_report();
}
