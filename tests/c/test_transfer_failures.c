/* transfer.h with every CUDA call failing in turn, on the CUDA-runtime double: each failure is told, and nothing is
 * left behind or written later. */
#include <cuda_runtime_api.h>

#include "check.h"
#include "double.h"
#include "failures.h"
#include "transfer/ring.h"
#include "transfer/transfer.h"
#include "transfer_arrays.h"

enum { MIB = 1 << 20 };

/* Pinned memory of up to 16 MiB too. */
static const struct transfer_options by_copies = {.way = TRANSFER_COPIES};

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
        CHECK(holds_sum(&failing));
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

static void
every_failure_is_told_and_leaves_nothing(void)
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
    for (int pinned = 0; pinned < 8; pinned += 7) {
        struct arrays arrays = arrays_new(COMPONENT_I32, MIB, pinned);
        double_fail("cudaLaunchKernel", 2, cudaErrorLaunchFailure, 0);
        CHECK(transfer_add(&arrays.plan, &by_copies, &fp_flags, &status) < 0 && status.code == STATUS_DEVICE_LOST);
        CHECK(strstr(status.text, "output is undefined"), "%s", status.text);
        CHECK(transfer_add(&arrays.plan, &by_copies, &fp_flags, &status) < 0 && status.code == STATUS_DEVICE_LOST);
        double_reset(1);
        arrays_free(&arrays);
    }
}

int
main(void)
{
    setenv("VECADD_NUM_THREADS", "3", 1); /* several sets of slots on any machine */
    RUN(every_failure_is_told_and_leaves_nothing);
    RUN(a_full_device_leaves_out_untouched);
    RUN(a_device_lost_on_the_way_says_that_out_is_undefined);
    return check_report();
}
