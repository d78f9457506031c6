/* The transfer rungs on the CUDA-runtime double: CUDA calls that fail in turn while a hybrid's timeline is made, and
 * while parts of chunks are timed. All others fail in tests/device/test_failures.py and, of the hybrid, in
 * test_hybrid.c. */
#include <cuda_runtime_api.h>

#include "double.h"
#include "failures.h"
#include "lab/base/rung.h"
#include "lab/ladder/timeline.h"
#include "tests.h"
#include "transfer/transfer.h"
#include "transfer_arrays.h"

enum { MIB = 1 << 20 };

static struct arrays failing;

static const struct rung *failing_rung;
static int failing_timed; /* of chunks_reused */
static bool failing_with_timeline;

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
    if (strcmp(failing_rung->name, "hybrid") == 0) {
        call.params[0] = 1;
        double_clock(1000000000); /* a second each time that it is read: the processor is slow */
    }
    if (strcmp(failing_rung->name, "chunks_reused") == 0)
        call.params[1] = failing_timed;
    if (strcmp(failing_rung->name, "streams2") == 0 || strcmp(failing_rung->name, "chunks_reused") == 0)
        call.params[2] = 1 << 16; /* components a chunk */
    call.timeline = failing_with_timeline ? timeline_new() : NULL;
    memset(failing.c, 0xee, failing.bytes);
    const int result = failing_rung->run(failing_rung, &call, status);
    double_clock(0);
    timeline_free(call.timeline);
    if (result < 0) {
        double_synchronize(1);
        return -1;
    }
    CHECK(has_sum(&failing), "%s", failing_rung->name);
    return 0;
}

/* One thread of the hybrid adds 8 grains before the GPU gets 16. */
TEST(a_timeline_of_a_hybrid_fails_cleanly)
{
    static const char *const calls[] = {"cudaEventCreate", "cudaEventRecord", "cudaEventSynchronize",
                                        "cudaEventElapsedTime"};
    static const int least[] = {3, 3, 1, 2};
    failing_with_timeline = true;
    failing_rung = rung_named("hybrid");
    failing = arrays_new(COMPONENT_F32, 2 * MIB / 4, 7);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const int told = fail_each_call(calls[i], cudaErrorUnknown, run_rung);
        CHECK(told >= least[i], "%s: %d", calls[i], told);
        CHECK(cudaGetLastError() == cudaSuccess, "%s", calls[i]);
    }
    arrays_free(&failing);
}

TEST(streams2_tells_of_a_failed_wait)
{
    failing = arrays_new(COMPONENT_F32, 1000, 7);
    failing_rung = rung_named("streams2");
    CHECK(fail_each_call("cudaStreamSynchronize", cudaErrorUnknown, run_rung) == 2);
    arrays_free(&failing);
}

/* What is timed of the chunks changes neither the sum nor how a failure ends. */
TEST(chunks_add_whatever_of_them_is_timed)
{
    static const char *const calls[] = {"cudaDeviceGetAttribute", "cudaMallocFromPoolAsync", "cudaMemsetAsync",
                                        "cudaLaunchKernel",       "cudaEventCreate",         "cudaEventRecord",
                                        "cudaEventElapsedTime",   "cudaStreamSynchronize"};
    failing_rung = rung_named("chunks_reused");
    failing = arrays_new(COMPONENT_F32, 150001, 7); /* three chunks */
    for (failing_timed = 0; failing_timed <= failing_rung->params[1].most; failing_timed++) {
        struct status status;
        CHECK(run_rung(&status) == 0, "%d: %s", failing_timed, status.text);
        int told = 0;
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
            told += fail_each_call(calls[i], cudaErrorUnknown, run_rung);
        CHECK(told >= 6 + 10 * failing_timed, "%d: %d", failing_timed, told);
        CHECK(cudaGetLastError() == cudaSuccess, "%d", failing_timed);
    }
    failing_timed = 0;
    arrays_free(&failing);
}
