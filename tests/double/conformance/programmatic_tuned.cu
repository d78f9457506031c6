/* vecadd.add's own kernel, launched with the attribute of programmatic dependent launch: it comes after all that is
 * ahead of it in its stream. */
#include "programmatic.cuh"

/* What vecadd.add launches. */
static int
queue_tuned(const struct arrays *x)
{
    struct add_call call = {};
    call.component = COMPONENT_F32;
    call.a = x->a;
    call.b = x->b;
    call.c = x->c;
    call.n = N;
    call.stream = x->stream;
    call.programmatic = true;
    return add_launch(&call);
}

/* The same with one-element shifts, so that each vector is put together of two. */
static int
queue_tuned_misaligned(const struct arrays *x)
{
    struct add_call call = {};
    call.component = COMPONENT_F32;
    call.a = x->a;
    call.b = x->b + 1;
    call.c = x->c;
    call.n = N - 1;
    call.stream = x->stream;
    call.programmatic = true;
    const cudaError_t error = add_launch(&call);
    if (error != cudaSuccess)
        return error;
    call.a = x->a + N - 1;
    call.b = x->b + N - 1;
    call.c = x->c + N - 1;
    call.n = 1;
    return add_launch(&call);
}

TEST(tuned_comes_after_the_one_ahead)
{
    if (!supported())
        return;
    CHECK(add_load() == cudaSuccess);
    for (bool legacy : {false, true})
        for (queue_next *queue : {queue_tuned, queue_tuned_misaligned}) {
            struct arrays x = arrays_open();
            const cudaStream_t created = x.stream;
            x.stream = legacy ? nullptr : created;
            CHECK(rounds_wrong(&x, queue) == 0, "legacy %d, misaligned %d", legacy, queue == queue_tuned_misaligned);
            x.stream = created;
            arrays_close(&x);
        }
}

#if !VECADD_DOUBLE
/* Neither waits nor touches what tuned does. */
__global__ static void
pass_by(float *elsewhere, bool trigger)
{
    if (trigger)
        trigger_dependents();
    if (thread_number() == 0)
        *elsewhere = 1;
}
#endif

/* A kernel's wait is for the one ahead, which has not ended before all ahead of it have: also where it did not wait for
 * them, as other libraries' kernels may. The double does not promise that; a GPU keeps it. */
TEST(tuned_comes_after_all_that_is_ahead_of_a_kernel_that_waits_for_nothing)
{
#if !VECADD_DOUBLE
    if (!supported())
        return;
    CHECK(add_load() == cudaSuccess && load(pass_by) == cudaSuccess);
    struct arrays x = arrays_open();
    const cudaStream_t created = x.stream;
    for (int round = 1; round <= 2 * ROUNDS; round++) {
        const float value = static_cast<float>(round);
        x.stream = round % 2 ? created : nullptr;
        CHECK(ahead(&x, value) == cudaSuccess);
        CHECK(launch(pass_by, 1, 32, launch_target(x.stream, nullptr, true), x.seen, round % 4 < 2) == cudaSuccess);
        CHECK(queue_tuned(&x) == cudaSuccess);
        CHECK(cudaStreamSynchronize(x.stream) == cudaSuccess);
        CHECK(others(x.c, 3 * value) == 0, "round %d", round);
    }
    x.stream = created;
    arrays_close(&x);
#endif
}

/* The legacy default stream comes after what is queued on the blocking streams, and they come after it. */
TEST(tuned_on_the_legacy_stream_comes_after_the_blocking_streams_and_before_what_they_do_next)
{
    if (!supported())
        return;
    CHECK(add_load() == cudaSuccess);
    struct arrays legacy = arrays_open(), blocking = legacy;
    legacy.stream = nullptr;
    CHECK(cudaStreamCreate(&blocking.stream) == cudaSuccess);
    for (int round = 1; round <= ROUNDS; round++) {
        const float value = static_cast<float>(round);
        CHECK(queue_tuned(&legacy) == cudaSuccess);
        CHECK(ahead(&blocking, value) == cudaSuccess);
        CHECK(queue_tuned(&legacy) == cudaSuccess);
        CHECK(ahead(&blocking, -value) == cudaSuccess);
        CHECK(cudaDeviceSynchronize() == cudaSuccess);
        CHECK(others(legacy.c, 3 * value) == 0 && others(legacy.seen, 3 * value) == 0, "round %d", round);
    }
    CHECK(cudaStreamDestroy(blocking.stream) == cudaSuccess);
    CHECK(cudaFree(legacy.a) == cudaSuccess && cudaFree(legacy.b) == cudaSuccess);
    CHECK(cudaFree(legacy.c) == cudaSuccess && cudaFree(legacy.seen) == cudaSuccess);
}
