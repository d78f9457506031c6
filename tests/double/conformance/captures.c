/* Which calls end a capture: each call beside a capture of every mode, by the thread that captures and by another one,
 * in the thread's usual mode and in the relaxed one. The answers were read off an H200 (driver 580, CUDA 13.0). */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "../../c/tests.h"
#include "cuda/kernels.h"

enum { N = 1000, BYTES = N * sizeof(int), PAGE = 4096 };

/* What the calls are made on. `captured` is the stream that captures. */
struct scene {
    cudaStream_t captured, other, blocking;
    cudaEvent_t reached, spare;
    cudaMemPool_t pool;
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    int *device, *pinned, host[N];
    void *ordered; /* allocated in the order of `other` */
    char *pages;   /* two of ordinary memory */
    bool registered[2];
    void *made; /* by the call, with cudaMallocAsync or the like */
    void *plain, *locked;
    cudaStream_t made_stream;
    cudaEvent_t made_event;
    cudaMemPool_t made_pool;
    cudaGraphExec_t made_exec;
};

typedef cudaError_t scene_call(struct scene *scene);

/* How a call goes beside a capture. */
struct answer {
    cudaError_t status;
    bool ends;    /* the capture */
    bool by_mode; /* both only where the modes forbid a call that could wait; elsewhere its status is: */
    cudaError_t otherwise;
};

#define REFUSED(error)                                                                                                 \
    {                                                                                                                  \
        .status = (error)                                                                                              \
    }
#define ENDS(error)                                                                                                    \
    {                                                                                                                  \
        .status = (error), .ends = true                                                                                \
    }
#define BY_MODE(error)                                                                                                 \
    {                                                                                                                  \
        .status = cudaErrorStreamCaptureUnsupported, .ends = true, .by_mode = true, .otherwise = (error)               \
    }
#define GOES     REFUSED(cudaSuccess)
#define UNSAFE   BY_MODE(cudaSuccess)
#define NEVER    ENDS(cudaErrorStreamCaptureUnsupported)
#define IMPLICIT ENDS(cudaErrorStreamCaptureImplicit)

/* The calls, one a function. */

static cudaError_t
launch_on(struct scene *scene, cudaStream_t stream)
{
    const struct add_call call = {.component = COMPONENT_I32,
                                  .a = scene->device,
                                  .b = scene->device,
                                  .c = scene->device,
                                  .n = N,
                                  .stream = stream};
    return add_launch(&call);
}

static cudaError_t
free_and_forget(void **memory, cudaError_t error)
{
    if (error == cudaSuccess)
        *memory = NULL;
    return error;
}

#define CALL(name, expression)                                                                                         \
    static cudaError_t name(struct scene *s)                                                                           \
    {                                                                                                                  \
        (void)s;                                                                                                       \
        return expression;                                                                                             \
    }

CALL(query_event, cudaEventQuery(s->reached))
CALL(wait_for_event, cudaEventSynchronize(s->reached))
CALL(query_other, cudaStreamQuery(s->other))
CALL(query_captured, cudaStreamQuery(s->captured))
CALL(query_legacy, cudaStreamQuery(NULL))
CALL(wait_for_other, cudaStreamSynchronize(s->other))
CALL(wait_for_captured, cudaStreamSynchronize(s->captured))
CALL(wait_for_legacy, cudaStreamSynchronize(cudaStreamLegacy))
CALL(wait_for_per_thread, cudaStreamSynchronize(cudaStreamPerThread))
CALL(wait_for_device, cudaDeviceSynchronize())

CALL(allocate, cudaMalloc(&s->plain, BYTES))
CALL(release, free_and_forget((void **)&s->device, cudaFree(s->device)))
CALL(allocate_on_other, cudaMallocAsync(&s->made, BYTES, s->other))
CALL(allocate_of_pool_on_other, cudaMallocFromPoolAsync(&s->made, BYTES, s->pool, s->other))
CALL(allocate_of_pool_on_legacy, cudaMallocFromPoolAsync(&s->made, BYTES, s->pool, NULL))
CALL(allocate_of_pool_in_capture, cudaMallocFromPoolAsync(&s->made, BYTES, s->pool, s->captured))
CALL(allocate_too_much_on_other, cudaMallocFromPoolAsync(&s->made, (size_t)1 << 50, s->pool, s->other))
CALL(allocate_too_much_in_capture, cudaMallocFromPoolAsync(&s->made, (size_t)1 << 50, s->pool, s->captured))
CALL(release_on_other, free_and_forget(&s->ordered, cudaFreeAsync(s->ordered, s->other)))
CALL(release_on_legacy, free_and_forget(&s->ordered, cudaFreeAsync(s->ordered, NULL)))
CALL(release_in_capture, free_and_forget(&s->ordered, cudaFreeAsync(s->ordered, s->captured)))
CALL(trim_pool, cudaMemPoolTrimTo(s->pool, 0))
CALL(set_pool, cudaMemPoolSetAttribute(s->pool, cudaMemPoolAttrReleaseThreshold, &(uint64_t){0}))
CALL(lock_memory, cudaHostAlloc(&s->locked, BYTES, cudaHostAllocPortable))
CALL(release_locked, free_and_forget((void **)&s->pinned, cudaFreeHost(s->pinned)))
CALL(address_of_locked, cudaHostGetDevicePointer(&(void *){NULL}, s->pinned, 0))

CALL(copy_on_other, cudaMemcpyAsync(s->device, s->pinned, BYTES, cudaMemcpyHostToDevice, s->other))
CALL(copy_ordinary_on_other, cudaMemcpyAsync(s->device, s->host, BYTES, cudaMemcpyHostToDevice, s->other))
CALL(copy_out_on_other, cudaMemcpyAsync(s->host, s->device, BYTES, cudaMemcpyDeviceToHost, s->other))
CALL(copy_on_legacy, cudaMemcpyAsync(s->device, s->pinned, BYTES, cudaMemcpyHostToDevice, NULL))
CALL(copy_and_wait, cudaMemcpy(s->device, s->host, BYTES, cudaMemcpyHostToDevice))
CALL(fill, cudaMemset(s->device, 0, BYTES))
CALL(fill_on_other, cudaMemsetAsync(s->device, 0, BYTES, s->other))
CALL(launch_on_other, launch_on(s, s->other))
CALL(launch_on_blocking, launch_on(s, s->blocking))
CALL(launch_on_legacy, launch_on(s, NULL))
CALL(launch_on_per_thread, launch_on(s, cudaStreamPerThread))
CALL(record_on_other, cudaEventRecord(s->spare, s->other))
CALL(record_on_legacy, cudaEventRecord(s->spare, NULL))
CALL(record_on_per_thread, cudaEventRecord(s->spare, cudaStreamPerThread))
CALL(make_other_wait, cudaStreamWaitEvent(s->other, s->reached, 0))
CALL(make_legacy_wait, cudaStreamWaitEvent(NULL, s->reached, 0))
CALL(make_per_thread_wait, cudaStreamWaitEvent(cudaStreamPerThread, s->reached, 0))
CALL(make_captured_wait, cudaStreamWaitEvent(s->captured, s->reached, 0))

CALL(ask_other, cudaStreamIsCapturing(s->other, &(enum cudaStreamCaptureStatus){0}))
CALL(ask_captured, cudaStreamIsCapturing(s->captured, &(enum cudaStreamCaptureStatus){0}))
CALL(ask_legacy, cudaStreamIsCapturing(NULL, &(enum cudaStreamCaptureStatus){0}))
CALL(ask_per_thread, cudaStreamIsCapturing(cudaStreamPerThread, &(enum cudaStreamCaptureStatus){0}))
CALL(device_of_other, cudaStreamGetDevice(s->other, &(int){0}))
CALL(device_of_captured, cudaStreamGetDevice(s->captured, &(int){0}))
CALL(flags_of_other, cudaStreamGetFlags(s->other, &(unsigned){0}))
CALL(flags_of_captured, cudaStreamGetFlags(s->captured, &(unsigned){0}))
CALL(make_stream, cudaStreamCreateWithFlags(&s->made_stream, cudaStreamNonBlocking))
CALL(make_event, cudaEventCreateWithFlags(&s->made_event, cudaEventDisableTiming))
CALL(memory_left, cudaMemGetInfo(&(size_t){0}, &(size_t){0}))
CALL(ask_pointer, cudaPointerGetAttributes(&(struct cudaPointerAttributes){0}, s->device))
CALL(load_kernels, add_load())
CALL(change_device, cudaSetDevice(0))
CALL(launch_graph_on_other, cudaGraphLaunch(s->exec, s->other))
CALL(launch_graph_in_capture, cudaGraphLaunch(s->exec, s->captured))
CALL(upload_graph_on_other, cudaGraphUpload(s->exec, s->other))
CALL(instantiate_graph, cudaGraphInstantiate(&s->made_exec, s->graph, 0))
CALL(release_graph, free_and_forget((void **)&s->exec, cudaGraphExecDestroy(s->exec)))
CALL(capture_legacy, cudaStreamBeginCapture(NULL, cudaStreamCaptureModeThreadLocal))

static cudaError_t
release_stream(struct scene *scene)
{
    cudaStream_t stream;
    const cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    (void)scene;
    return error == cudaSuccess ? cudaStreamDestroy(stream) : error;
}

static cudaError_t
release_event(struct scene *scene)
{
    return free_and_forget((void **)&scene->spare, cudaEventDestroy(scene->spare));
}

static cudaError_t
make_pool(struct scene *scene)
{
    const struct cudaMemPoolProps properties = {
        .allocType = cudaMemAllocationTypePinned,
        .location = {.type = cudaMemLocationTypeDevice, .id = 0},
    };
    return cudaMemPoolCreate(&scene->made_pool, &properties);
}

static cudaError_t
register_memory(struct scene *scene)
{
    const cudaError_t error = cudaHostRegister(scene->pages, PAGE, cudaHostRegisterPortable);
    scene->registered[0] = error == cudaSuccess;
    return error;
}

static cudaError_t
unregister_memory(struct scene *scene)
{
    const cudaError_t error = cudaHostUnregister(scene->pages + PAGE);
    scene->registered[1] = error != cudaSuccess;
    return error;
}

static cudaError_t
capture_other(struct scene *scene)
{
    cudaGraph_t graph = NULL;
    cudaError_t error = cudaStreamBeginCapture(scene->other, cudaStreamCaptureModeThreadLocal);
    if (error == cudaSuccess)
        error = cudaStreamEndCapture(scene->other, &graph);
    if (graph)
        cudaGraphDestroy(graph);
    return error;
}

static const struct row {
    const char *name;
    scene_call *call;
    struct answer apart, blocking; /* beside a capture of a non-blocking stream, and of a blocking one */
} rows[] = {
    {"cudaEventQuery", query_event, UNSAFE, UNSAFE},
    {"cudaEventSynchronize", wait_for_event, UNSAFE, UNSAFE},
    {"cudaStreamQuery, another stream", query_other, UNSAFE, UNSAFE},
    {"cudaStreamQuery, the captured stream", query_captured, NEVER, NEVER},
    {"cudaStreamQuery, the legacy stream", query_legacy, UNSAFE, IMPLICIT},
    {"cudaStreamSynchronize, another stream", wait_for_other, UNSAFE, UNSAFE},
    {"cudaStreamSynchronize, the captured stream", wait_for_captured, NEVER, NEVER},
    {"cudaStreamSynchronize, the legacy stream", wait_for_legacy, UNSAFE, IMPLICIT},
    {"cudaStreamSynchronize, the per-thread stream", wait_for_per_thread, UNSAFE, UNSAFE},
    {"cudaDeviceSynchronize", wait_for_device, NEVER, NEVER},

    {"cudaMalloc", allocate, UNSAFE, UNSAFE},
    {"cudaFree", release, UNSAFE, UNSAFE},
    {"cudaMallocAsync, another stream", allocate_on_other, UNSAFE, UNSAFE},
    {"cudaMallocFromPoolAsync, another stream", allocate_of_pool_on_other, UNSAFE, UNSAFE},
    {"cudaMallocFromPoolAsync, the legacy stream", allocate_of_pool_on_legacy, UNSAFE, IMPLICIT},
    {"cudaMallocFromPoolAsync, the captured stream", allocate_of_pool_in_capture, GOES, GOES},
    {"cudaMallocFromPoolAsync of too much, another stream", allocate_too_much_on_other,
     BY_MODE(cudaErrorMemoryAllocation), BY_MODE(cudaErrorMemoryAllocation)},
    {"cudaMallocFromPoolAsync of too much, the captured stream", allocate_too_much_in_capture,
     REFUSED(cudaErrorMemoryAllocation), REFUSED(cudaErrorMemoryAllocation)},
    {"cudaFreeAsync, another stream", release_on_other, UNSAFE, UNSAFE},
    {"cudaFreeAsync, the legacy stream", release_on_legacy, UNSAFE, IMPLICIT},
    {"cudaFreeAsync of memory from outside, the captured stream", release_in_capture, REFUSED(cudaErrorInvalidValue),
     REFUSED(cudaErrorInvalidValue)},
    {"cudaMemPoolTrimTo", trim_pool, UNSAFE, UNSAFE},
    {"cudaMemPoolCreate", make_pool, UNSAFE, UNSAFE},
    {"cudaMemPoolSetAttribute", set_pool, UNSAFE, UNSAFE},
    {"cudaHostAlloc", lock_memory, UNSAFE, UNSAFE},
    {"cudaFreeHost", release_locked, UNSAFE, UNSAFE},
    {"cudaHostRegister", register_memory, UNSAFE, UNSAFE},
    {"cudaHostUnregister", unregister_memory, UNSAFE, UNSAFE},
    {"cudaHostGetDevicePointer", address_of_locked, GOES, GOES},

    {"cudaMemcpyAsync, another stream", copy_on_other, GOES, GOES},
    {"cudaMemcpyAsync of ordinary memory, another stream", copy_ordinary_on_other, GOES, GOES},
    {"cudaMemcpyAsync to ordinary memory, another stream", copy_out_on_other, GOES, GOES},
    {"cudaMemcpyAsync, the legacy stream", copy_on_legacy, GOES, IMPLICIT},
    {"cudaMemcpy", copy_and_wait, GOES, IMPLICIT},
    {"cudaMemset", fill, GOES, IMPLICIT},
    {"cudaMemsetAsync, another stream", fill_on_other, GOES, GOES},
    {"a launch, another stream", launch_on_other, GOES, GOES},
    {"a launch, another blocking stream", launch_on_blocking, GOES, GOES},
    {"a launch, the legacy stream", launch_on_legacy, GOES, IMPLICIT},
    {"a launch, the per-thread stream", launch_on_per_thread, GOES, GOES},
    {"cudaEventRecord, another stream", record_on_other, GOES, GOES},
    {"cudaEventRecord, the legacy stream", record_on_legacy, GOES, IMPLICIT},
    {"cudaEventRecord, the per-thread stream", record_on_per_thread, GOES, GOES},
    {"cudaStreamWaitEvent, another stream", make_other_wait, GOES, GOES},
    {"cudaStreamWaitEvent, the legacy stream", make_legacy_wait, GOES, IMPLICIT},
    {"cudaStreamWaitEvent, the per-thread stream", make_per_thread_wait, GOES, GOES},
    {"cudaStreamWaitEvent for what is outside, the captured stream", make_captured_wait,
     ENDS(cudaErrorStreamCaptureIsolation), ENDS(cudaErrorStreamCaptureIsolation)},

    {"cudaStreamIsCapturing, another stream", ask_other, GOES, GOES},
    {"cudaStreamIsCapturing, the captured stream", ask_captured, GOES, GOES},
    {"cudaStreamIsCapturing, the legacy stream", ask_legacy, GOES, REFUSED(cudaErrorStreamCaptureImplicit)},
    {"cudaStreamIsCapturing, the per-thread stream", ask_per_thread, GOES, GOES},
    {"cudaStreamGetDevice, another stream", device_of_other, GOES, GOES},
    {"cudaStreamGetDevice, the captured stream", device_of_captured, NEVER, NEVER},
    {"cudaStreamGetFlags, another stream", flags_of_other, GOES, GOES},
    {"cudaStreamGetFlags, the captured stream", flags_of_captured, NEVER, NEVER},
    {"cudaStreamCreateWithFlags", make_stream, GOES, GOES},
    {"cudaStreamDestroy", release_stream, GOES, GOES},
    {"cudaEventCreateWithFlags", make_event, GOES, GOES},
    {"cudaEventDestroy", release_event, GOES, GOES},
    {"cudaMemGetInfo", memory_left, GOES, GOES},
    {"cudaPointerGetAttributes", ask_pointer, GOES, GOES},
    {"cudaFuncGetAttributes", load_kernels, GOES, GOES},
    {"cudaSetDevice", change_device, GOES, GOES},
    {"cudaGraphLaunch, another stream", launch_graph_on_other, GOES, GOES},
    {"cudaGraphLaunch, the captured stream", launch_graph_in_capture, NEVER, NEVER},
    {"cudaGraphUpload, another stream", upload_graph_on_other, GOES, GOES},
    {"cudaGraphInstantiate", instantiate_graph, UNSAFE, UNSAFE},
    {"cudaGraphExecDestroy", release_graph, UNSAFE, UNSAFE},
    {"cudaStreamBeginCapture, another stream", capture_other, GOES, GOES},
    {"cudaStreamBeginCapture, the legacy stream", capture_legacy, REFUSED(cudaErrorStreamCaptureUnsupported), IMPLICIT},
};

static void
make_graph(struct scene *scene)
{
    CHECK(cudaStreamBeginCapture(scene->other, cudaStreamCaptureModeRelaxed) == cudaSuccess);
    CHECK(launch_on(scene, scene->other) == cudaSuccess);
    CHECK(cudaStreamEndCapture(scene->other, &scene->graph) == cudaSuccess);
    CHECK(cudaGraphInstantiate(&scene->exec, scene->graph, 0) == cudaSuccess);
}

static void
open_scene(struct scene *scene, unsigned captured_flags)
{
    *scene = (struct scene){0};
    CHECK(cudaStreamCreateWithFlags(&scene->captured, captured_flags) == cudaSuccess);
    CHECK(cudaStreamCreateWithFlags(&scene->other, cudaStreamNonBlocking) == cudaSuccess);
    CHECK(cudaStreamCreateWithFlags(&scene->blocking, cudaStreamDefault) == cudaSuccess);
    CHECK(cudaEventCreateWithFlags(&scene->reached, cudaEventDisableTiming) == cudaSuccess);
    CHECK(cudaEventCreateWithFlags(&scene->spare, cudaEventDisableTiming) == cudaSuccess);
    CHECK(make_pool(scene) == cudaSuccess);
    scene->pool = scene->made_pool;
    scene->made_pool = NULL;
    CHECK(cudaMalloc((void **)&scene->device, BYTES) == cudaSuccess);
    CHECK(cudaMemset(scene->device, 0, BYTES) == cudaSuccess);
    CHECK(cudaHostAlloc((void **)&scene->pinned, BYTES, cudaHostAllocMapped) == cudaSuccess);
    CHECK(cudaMallocFromPoolAsync(&scene->ordered, BYTES, scene->pool, scene->other) == cudaSuccess);
    scene->pages = aligned_alloc(PAGE, 2 * PAGE);
    CHECK(cudaHostRegister(scene->pages + PAGE, PAGE, cudaHostRegisterPortable) == cudaSuccess);
    scene->registered[1] = true;
    CHECK(add_load() == cudaSuccess);
    make_graph(scene);
    CHECK(cudaEventRecord(scene->reached, scene->other) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

static void
close_scene(struct scene *scene)
{
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    if (scene->made)
        CHECK(cudaFreeAsync(scene->made, scene->other) == cudaSuccess);
    if (scene->ordered)
        CHECK(cudaFreeAsync(scene->ordered, scene->other) == cudaSuccess);
    for (int i = 0; i < 2; i++)
        if (scene->registered[i])
            CHECK(cudaHostUnregister(scene->pages + (size_t)i * PAGE) == cudaSuccess);
    CHECK(cudaFree(scene->device) == cudaSuccess && cudaFree(scene->plain) == cudaSuccess);
    CHECK(cudaFreeHost(scene->pinned) == cudaSuccess && cudaFreeHost(scene->locked) == cudaSuccess);
    if (scene->exec)
        CHECK(cudaGraphExecDestroy(scene->exec) == cudaSuccess);
    if (scene->made_exec)
        CHECK(cudaGraphExecDestroy(scene->made_exec) == cudaSuccess);
    CHECK(cudaGraphDestroy(scene->graph) == cudaSuccess);
    CHECK(cudaEventDestroy(scene->reached) == cudaSuccess);
    if (scene->spare)
        CHECK(cudaEventDestroy(scene->spare) == cudaSuccess);
    if (scene->made_event)
        CHECK(cudaEventDestroy(scene->made_event) == cudaSuccess);
    cudaStream_t const streams[] = {scene->captured, scene->other, scene->blocking, scene->made_stream};
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        if (streams[i])
            CHECK(cudaStreamDestroy(streams[i]) == cudaSuccess);
    CHECK(cudaMemPoolDestroy(scene->pool) == cudaSuccess);
    if (scene->made_pool)
        CHECK(cudaMemPoolDestroy(scene->made_pool) == cudaSuccess);
    free(scene->pages);
}

/* Who makes the call, and in which mode of its thread. */
struct caller {
    const struct row *row;
    struct scene *scene;
    enum cudaStreamCaptureMode mode;
    cudaError_t status;
};

static void *
make_call(void *given)
{
    struct caller *caller = given;
    CHECK(cudaThreadExchangeStreamCaptureMode(&caller->mode) == cudaSuccess);
    caller->status = caller->row->call(caller->scene);
    cudaGetLastError();
    CHECK(cudaThreadExchangeStreamCaptureMode(&caller->mode) == cudaSuccess);
    return NULL;
}

/* In a thread of its own, which ends once its per-thread stream is done: where one ends while that has work, CUDA may
 * hang in another thread's next call (driver 580, on an H200). A wait in relaxed mode ends no capture. */
static void *
make_call_elsewhere(void *given)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    make_call(given);
    CHECK(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
    CHECK(cudaStreamSynchronize(cudaStreamPerThread) == cudaSuccess);
    return NULL;
}

static cudaError_t
status_of(const struct row *row, struct scene *scene, bool elsewhere, enum cudaStreamCaptureMode mode)
{
    struct caller caller = {row, scene, mode, cudaErrorUnknown};
    pthread_t thread;
    if (!elsewhere)
        make_call(&caller);
    else if (pthread_create(&thread, NULL, make_call_elsewhere, &caller) == 0)
        pthread_join(thread, NULL);
    return caller.status;
}

/* Whether a call that could wait is forbidden to a thread in `mode` beside a capture that was begun in `captured`. */
static bool
is_forbidden(enum cudaStreamCaptureMode captured, bool elsewhere, enum cudaStreamCaptureMode mode)
{
    if (captured == cudaStreamCaptureModeRelaxed || mode == cudaStreamCaptureModeRelaxed)
        return false;
    return !elsewhere || (captured == cudaStreamCaptureModeGlobal && mode == cudaStreamCaptureModeGlobal);
}

static void
check_row(const struct row *row, unsigned flags, enum cudaStreamCaptureMode captured, bool elsewhere,
          enum cudaStreamCaptureMode mode)
{
    static const char *const names[] = {"global", "thread-local", "relaxed"};
    const struct answer *answer = flags == cudaStreamNonBlocking ? &row->apart : &row->blocking;
    const bool applies = !answer->by_mode || is_forbidden(captured, elsewhere, mode);
    const cudaError_t want = applies ? answer->status : answer->otherwise;
    const bool ends = applies && answer->ends;
    struct scene scene;
    cudaGraph_t graph = NULL;
    open_scene(&scene, flags);
    CHECK(cudaStreamBeginCapture(scene.captured, captured) == cudaSuccess);
    const cudaError_t status = status_of(row, &scene, elsewhere, mode);
    const cudaError_t launched = launch_on(&scene, scene.captured),
                      ended = cudaStreamEndCapture(scene.captured, &graph);
    const cudaError_t left = ends ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
    CHECK(status == want && launched == left && ended == left,
          "%s beside a %s capture of a %s stream, %s thread, %s mode: %d, not %d; launch %d, end %d", row->name,
          names[captured], flags ? "non-blocking" : "blocking", elsewhere ? "another" : "its own", names[mode], status,
          want, launched, ended);
    cudaGetLastError();
    if (graph)
        CHECK(cudaGraphDestroy(graph) == cudaSuccess);
    if (row->call == allocate_of_pool_in_capture)
        scene.made = NULL; /* the graph's */
    close_scene(&scene);
}

static void
check_rows(unsigned flags, enum cudaStreamCaptureMode captured)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int elsewhere = 0; elsewhere < 2; elsewhere++)
            for (int mode = cudaStreamCaptureModeGlobal; mode <= cudaStreamCaptureModeRelaxed; mode++)
                check_row(&rows[i], flags, captured, elsewhere, (enum cudaStreamCaptureMode)mode);
}

TEST(calls_beside_a_global_capture)
{
    check_rows(cudaStreamNonBlocking, cudaStreamCaptureModeGlobal);
    check_rows(cudaStreamDefault, cudaStreamCaptureModeGlobal);
}

TEST(calls_beside_a_thread_local_capture)
{
    check_rows(cudaStreamNonBlocking, cudaStreamCaptureModeThreadLocal);
    check_rows(cudaStreamDefault, cudaStreamCaptureModeThreadLocal);
}

TEST(calls_beside_a_relaxed_capture)
{
    check_rows(cudaStreamNonBlocking, cudaStreamCaptureModeRelaxed);
    check_rows(cudaStreamDefault, cudaStreamCaptureModeRelaxed);
}
