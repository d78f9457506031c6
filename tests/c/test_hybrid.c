/* hybrid_add on the CUDA-runtime double: the two ends meet in every component, at any alignment, under many orders of
 * the queued work, and with every CUDA call failing in turn. */
#include <cuda_runtime_api.h>
#include <math.h>

#include "base/dtype.h"
#include "double.h"
#include "failures.h"
#include "host/add.h"
#include "tests.h"
#include "transfer/transfer.h"
#include "transfer_arrays.h"

enum { MIB = 1 << 20, GRAIN = 64 << 10 };

/* A second passes each time that the clock is read, and the driving thread reads it where it decides and where it
 * queues: by this clock the processor is slow and a chunk soon back, so that the GPU gets chunks until a few are left.
 */
enum { SECOND = 1000000000 };

/* Of which the GPU gets a share, with one thread: it adds 8 grains first, and a chunk is at least 16. */
enum { SHARED = 2 * MIB };

static struct plan
hybrid_plan(const struct arrays *arrays, int threads)
{
    struct status status;
    struct plan plan = arrays->plan;
    plan.route = ROUTE_HYBRID;
    const struct host_request request = {
        .component = plan.component, .n = plan.n, .moved = 3 * plan_bytes(&plan), .unit = 1, .threads = threads};
    CHECK(host_schedule(&plan.schedule, &request, &status) == 0);
    return plan;
}

static int
add_slowly(const struct arrays *arrays, int threads, unsigned *fp_flags, struct status *status)
{
    const struct plan plan = hybrid_plan(arrays, threads);
    double_clock(SECOND);
    const int result = hybrid_add(&plan, NULL, fp_flags, status);
    double_clock(0);
    return result;
}

TEST(every_component_is_added_by_both)
{
    struct status status;
    unsigned fp_flags = 99;
    const size_t bytes[] = {8, 5 * GRAIN + 8, SHARED - 8, SHARED, SHARED + GRAIN + 24};
    for (int component = 0; component < COMPONENT_COUNT; component++)
        for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
            struct arrays arrays = arrays_new(component, bytes[i] / component_size[component], 7);
            double_reset((unsigned)i);
            CHECK(add_slowly(&arrays, 3, &fp_flags, &status) == 0, "%s", status.text);
            CHECK(fp_flags == 0 && has_sum(&arrays), "component %d, %zu bytes", component, bytes[i]);
            memset(arrays.c, 0xee, arrays.bytes);
            CHECK(add_slowly(&arrays, 1, &fp_flags, &status) == 0, "%s", status.text);
            CHECK(fp_flags == 0 && has_sum(&arrays), "component %d, %zu bytes", component, bytes[i]);
            CHECK((double_calls("cudaLaunchKernel") > 0) == (bytes[i] >= SHARED - 8), "%zu bytes", bytes[i]);
            arrays_free(&arrays);
        }
    CHECK(double_faults() == 0 && live_now().device_blocks == 0);
}

TEST(any_alignment_and_order_gives_the_sum)
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
        CHECK(add_slowly(&view, 3, &fp_flags, &status) == 0, "%s", status.text);
        const int16_t *c = arrays.c, *expected = arrays.expected;
        CHECK(memcmp(c + skip, expected + skip, 2 * n) == 0, "seed %u", seed);
        CHECK(all_are(arrays.c, 2 * skip, 0xee) && double_faults() == 0);
        arrays_free(&arrays);
    }
}

/* By a clock that hardly moves the processor has added all that is left long before a first chunk would be back. */
TEST(a_fast_processor_leaves_the_gpu_nothing)
{
    struct status status;
    unsigned fp_flags;
    struct arrays arrays = arrays_new(COMPONENT_F32, MIB, 7);
    const struct plan plan = hybrid_plan(&arrays, 1);
    double_reset(0);
    double_clock(1);
    CHECK(hybrid_add(&plan, NULL, &fp_flags, &status) == 0 && has_sum(&arrays));
    CHECK(double_calls("cudaLaunchKernel") == 0);
    double_clock(0);
    arrays_free(&arrays);
}

/* A transfer leaves its slots as its last chunks had them. */
TEST(the_gpu_has_its_share_after_a_transfer_and_after_a_hybrid)
{
    struct status status;
    unsigned fp_flags;
    for (int pinned = 0; pinned <= 7; pinned += 7) {
        struct arrays before = arrays_new(COMPONENT_F32, MIB, pinned), arrays = arrays_new(COMPONENT_F32, MIB, 7);
        CHECK(transfer_add(&before.plan, NULL, &fp_flags, &status) == 0 && has_sum(&before));
        for (int time = 0; time < 2; time++) {
            double_reset(0);
            memset(arrays.c, 0xee, arrays.bytes);
            CHECK(add_slowly(&arrays, 1, &fp_flags, &status) == 0 && has_sum(&arrays));
            CHECK(double_calls("cudaLaunchKernel") > 0, "pinned %d, time %d", pinned, time);
        }
        arrays_free(&before);
        arrays_free(&arrays);
    }
}

static struct arrays failing;

static int
add_again(struct status *status)
{
    unsigned fp_flags;
    memset(failing.c, 0xee, failing.bytes);
    const int result = add_slowly(&failing, 1, &fp_flags, status);
    CHECK(result < 0 || has_sum(&failing));
    CHECK(result != -1 || *(unsigned char *)failing.c == 0xee);
    CHECK((result == TRANSFER_SPOILED) == (result < 0 && strstr(status->text, "output is undefined")));
    memset(failing.c, 0x55, failing.bytes);
    double_synchronize(0);
    CHECK(all_are(failing.c, failing.bytes, 0x55), "%s: it was written later", status->text);
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

TEST(every_failure_is_told_or_made_good_and_leaves_nothing)
{
    static const struct {
        const char *call;
        int told; /* at least */
    } calls[] = {
        {"cuPointerGetAttributes", 1}, {"cudaStreamCreateWithFlags", 0}, {"cudaMallocFromPoolAsync", 0},
        {"cudaMemsetAsync", 1},        {"cudaMemcpyAsync", 1},           {"cudaLaunchKernel", 1},
        {"cudaStreamQuery", 0},        {"cudaStreamSynchronize", 1},
    };
    failing = arrays_new(COMPONENT_I32, SHARED / 4 + 5, 7);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        CHECK(fail_each_call(calls[i].call, cudaErrorUnknown, add_from_nothing) >= calls[i].told, "%s", calls[i].call);
    CHECK(fail_each_call("cudaGetDevice", cudaErrorUnknown, add_again) > 0);
    CHECK(cudaGetLastError() == cudaSuccess);
    transfer_release();
    arrays_free(&failing);
}
