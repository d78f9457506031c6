/* hybrid_add on the CUDA-runtime double: the two ends meet in every component, at any alignment, under many orders of
 * the queued work, and with every CUDA call failing in turn. */
#include <cuda_runtime_api.h>
#include <math.h>

#include "base/fpflags.h"
#include "check.h"
#include "double.h"
#include "failures.h"
#include "host/add.h"
#include "transfer/ring.h"
#include "transfer/transfer.h"
#include "transfer_arrays.h"

enum { MIB = 1 << 20, GRAIN = 64 << 10 };

/* The GPU takes chunks wherever there are some: on the double it never pays. */
static const struct transfer_options eagerly = {.eager = true};

/* Of how many threads; with one, which drives the GPU first of all, the GPU gets its chunk of any length. */
static struct plan
hybrid_plan(const struct arrays *arrays, int threads)
{
    struct status status;
    struct plan plan = arrays->plan;
    plan.route = ROUTE_HYBRID;
    plan.simd = host_simd_chosen(&status);
    plan.schedule = host_schedule_for(plan.component, plan.n, plan.c == plan.a || plan.c == plan.b);
    plan.schedule.threads = threads;
    return plan;
}

static int
add_eagerly(const struct arrays *arrays, int threads, unsigned *fp_flags, struct status *status)
{
    const struct plan plan = hybrid_plan(arrays, threads);
    return hybrid_add_with(&plan, &eagerly, fp_flags, status);
}

static void
every_component_is_added_by_both(void)
{
    struct status status;
    unsigned fp_flags = 99;
    const size_t bytes[] = {8, 1000 * 8, GRAIN - 8, GRAIN, 5 * GRAIN + 8, 2 * MIB + 24};
    for (int component = 0; component < COMPONENT_COUNT; component++)
        for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
            struct arrays arrays = arrays_new(component, bytes[i] / component_size[component], 7);
            double_reset((unsigned)i);
            CHECK(add_eagerly(&arrays, 3, &fp_flags, &status) == 0, "%s", status.text);
            CHECK(fp_flags == 0 && holds_sum(&arrays), "lane %d, %zu bytes", component, bytes[i]);
            memset(arrays.c, 0xee, arrays.bytes);
            CHECK(add_eagerly(&arrays, 1, &fp_flags, &status) == 0, "%s", status.text);
            CHECK(fp_flags == 0 && holds_sum(&arrays), "lane %d, %zu bytes", component, bytes[i]);
            CHECK(double_calls("cudaLaunchKernel") > 0);
            arrays_free(&arrays);
        }
    CHECK(double_faults() == 0 && live_now().device_blocks == 0);
}

static void
any_alignment_and_order_gives_the_sum(void)
{
    struct status status;
    unsigned fp_flags;
    for (unsigned seed = 0; seed < 12; seed++) {
        const size_t skip = 1000 * seed + seed, n = 3 * MIB;
        struct arrays arrays = arrays_new(COMPONENT_I16, n + skip, 7);
        struct arrays view = arrays;
        view.plan.a = (int16_t *)arrays.a + skip;
        view.plan.b = (int16_t *)arrays.b + skip;
        view.plan.c = (int16_t *)arrays.c + skip;
        view.plan.n = n;
        double_reset(seed);
        CHECK(add_eagerly(&view, 3, &fp_flags, &status) == 0, "%s", status.text);
        const int16_t *c = arrays.c, *expected = arrays.expected;
        CHECK(memcmp(c + skip, expected + skip, 2 * n) == 0, "seed %u", seed);
        size_t touched = 0;
        for (size_t i = 0; i < 2 * skip; i++)
            touched += ((const unsigned char *)arrays.c)[i] != 0xee;
        CHECK(touched == 0 && double_faults() == 0);
        arrays_free(&arrays);
    }
}

static void
out_may_be_an_input(void)
{
    struct status status;
    unsigned fp_flags;
    for (int which = 0; which < 2; which++) {
        struct arrays arrays = arrays_new(COMPONENT_F64, MIB / 4 + 3, 7);
        arrays.plan.c = which ? arrays.b : arrays.a;
        CHECK(add_eagerly(&arrays, 1, &fp_flags, &status) == 0, "%s", status.text);
        CHECK(memcmp(arrays.plan.c, arrays.expected, arrays.bytes) == 0);
        arrays_free(&arrays);
    }
}

static void
flags_come_from_both_ends(void)
{
    struct status status;
    for (int end = 0; end < 2; end++) {
        struct arrays arrays = arrays_new(COMPONENT_F32, MIB, 7);
        const size_t at = end ? MIB - 1 : 0;
        unsigned fp_flags = 0;
        ((float *)arrays.a)[at] = ((float *)arrays.b)[at] = 3e38f;
        CHECK(add_eagerly(&arrays, 1, &fp_flags, &status) == 0 && fp_flags == FP_OVERFLOW, "end %d: %u", end, fp_flags);
        ((float *)arrays.a)[at] = INFINITY;
        ((float *)arrays.b)[at] = -INFINITY;
        CHECK(add_eagerly(&arrays, 1, &fp_flags, &status) == 0 && fp_flags == FP_INVALID, "end %d: %u", end, fp_flags);
        arrays_free(&arrays);
    }
}

static void
ordinary_memory_is_the_processors_alone(void)
{
    struct status status;
    unsigned fp_flags;
    for (int pinned = 0; pinned < 7; pinned++) {
        struct arrays arrays = arrays_new(COMPONENT_F32, MIB, pinned);
        double_reset(0);
        CHECK(add_eagerly(&arrays, 1, &fp_flags, &status) == 0 && holds_sum(&arrays), "pinned %d", pinned);
        CHECK(double_calls("cudaLaunchKernel") == 0 && double_calls("cudaMemcpyAsync") == 0);
        arrays_free(&arrays);
    }
}

/* Whether and when the GPU gets a chunk is the clock's doing here. */
static void
a_long_addition_is_right_whoever_adds(void)
{
    struct status status;
    unsigned fp_flags;
    struct arrays arrays = arrays_new(COMPONENT_I64, 10 * MIB + 5, 7);
    const struct plan plan = hybrid_plan(&arrays, 3);
    for (unsigned seed = 0; seed < 3; seed++) {
        double_reset(seed);
        memset(arrays.c, 0xee, arrays.bytes);
        CHECK(hybrid_add(&plan, &fp_flags, &status) == 0 && holds_sum(&arrays));
        CHECK(double_faults() == 0);
    }
    arrays_free(&arrays);
}

static void
a_full_device_leaves_all_to_the_processor(void)
{
    struct status status;
    unsigned fp_flags;
    struct arrays arrays = arrays_new(COMPONENT_F32, MIB, 7);
    double_fail("cudaMallocFromPoolAsync", 2, cudaErrorMemoryAllocation, 1);
    CHECK(add_eagerly(&arrays, 1, &fp_flags, &status) == 0 && holds_sum(&arrays));
    CHECK(double_calls("cudaLaunchKernel") == 0 && live_now().device_blocks == 0);
    arrays_free(&arrays);
}

static struct arrays failing;

static int
add_again(struct status *status)
{
    unsigned fp_flags;
    memset(failing.c, 0xee, failing.bytes);
    const int result = add_eagerly(&failing, 1, &fp_flags, status);
    CHECK(result < 0 || holds_sum(&failing));
    CHECK(result != -1 || *(unsigned char *)failing.c == 0xee);
    CHECK((result == TRANSFER_SPOILED) == (result < 0 && strstr(status->text, "output is undefined")));
    memset(failing.c, 0x55, failing.bytes);
    double_synchronize(0);
    size_t changed = 0;
    for (size_t i = 0; i < failing.bytes; i++)
        changed += ((unsigned char *)failing.c)[i] != 0x55;
    CHECK(changed == 0, "%zu bytes were written later", changed);
    return result < 0 ? -1 : 0;
}

static int
add_from_nothing(struct status *status)
{
    transfer_release();
    const int result = add_again(status);
    transfer_release();
    return result;
}

static void
every_failure_is_told_or_made_good_and_leaves_nothing(void)
{
    static const struct {
        const char *call;
        int told; /* at least */
    } calls[] = {
        {"cudaPointerGetAttributes", 1}, {"cudaStreamCreateWithFlags", 0}, {"cudaMallocFromPoolAsync", 0},
        {"cudaMemsetAsync", 1},          {"cudaMemcpyAsync", 1},           {"cudaLaunchKernel", 1},
        {"cudaStreamQuery", 0},          {"cudaStreamSynchronize", 1},
    };
    failing = arrays_new(COMPONENT_I32, MIB / 4 + 5, 7);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        CHECK(fail_each_call(calls[i].call, cudaErrorUnknown, add_from_nothing) >= calls[i].told, "%s", calls[i].call);
    CHECK(fail_each_call("cudaGetDevice", cudaErrorUnknown, add_again) > 0);
    CHECK(cudaGetLastError() == cudaSuccess);
    transfer_release();
    arrays_free(&failing);
}

int
main(void)
{
    setenv("VECADD_NUM_THREADS", "3", 1);
    RUN(every_component_is_added_by_both);
    RUN(any_alignment_and_order_gives_the_sum);
    RUN(out_may_be_an_input);
    RUN(flags_come_from_both_ends);
    RUN(ordinary_memory_is_the_processors_alone);
    RUN(a_long_addition_is_right_whoever_adds);
    RUN(a_full_device_leaves_all_to_the_processor);
    RUN(every_failure_is_told_or_made_good_and_leaves_nothing);
    return check_report();
}
