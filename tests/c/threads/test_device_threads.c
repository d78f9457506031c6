/* Sixteen threads that add on two devices at once, on streams of their own and on streams that they share, with memory
 * that goes back and forth between them: for ThreadSanitizer, and for the double's rules of stream order.
 * VECADD_TEST_SECONDS says how long, two seconds without it. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "double.h"
#include "failures.h"
#include "gpu/add.h"
#include "gpu/buffer.h"
#include "gpu/device.h"
#include "gpu/memory.h"
#include "gpu/stream.h"
#include "tests.h"

enum { THREADS = 16, DEVICES = 2, MOST = 300, MIN_ROUNDS = 3 };

static void *shared_streams[DEVICES];
static double deadline;

static double
now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

struct worker {
    pthread_t thread;
    unsigned random;
    int device;
    void *own;
    long rounds;
};

static unsigned
draw(struct worker *worker, unsigned below)
{
    worker->random = worker->random * 1664525u + 1013904223u;
    return (worker->random >> 16) % below;
}

static void *
draw_stream(struct worker *worker)
{
    void *const streams[] = {worker->own, shared_streams[worker->device], NULL};
    return streams[draw(worker, 3)];
}

/* Now and then one that has to be parked. */
static struct device_buffer *
take(struct worker *worker, void *stream, size_t bytes)
{
    const struct stream_home home = {.stream = stream, .allocation = stream, .loose = draw(worker, 4) == 0};
    struct status status;
    struct device_buffer *block = device_buffer_reuse(worker->device, stream, bytes);
    if (!block)
        block = device_buffer_make(worker->device, &home, bytes, &status);
    CHECK(block != NULL);
    return block;
}

/* An operand whose elements come on a stream of its own. */
static void
drop_after(struct device_buffer *block, void *stream)
{
    struct device_drop *drop = malloc(sizeof *drop);
    CHECK(drop != NULL);
    *drop = (struct device_drop){.block = block, .stream = stream};
    device_buffer_drop_after(drop);
}

static struct device_buffer *
operand(struct worker *worker, void *stream, const int32_t *host, size_t n)
{
    struct status status;
    struct device_buffer *block = take(worker, stream, n * sizeof *host);
    CHECK(device_copy(worker->device, stream, COPY_IN, device_buffer_memory(block), host, n * sizeof *host, &status) ==
              0,
          "%s", status.text);
    return block;
}

static void
join(struct plan *plan, void *stream)
{
    for (int i = 0; i < plan->joins; i++)
        if (plan->join[i] == stream)
            return;
    if (stream != plan->stream)
        plan->join[plan->joins++] = stream;
}

/* c = a + b and c += a, each array at home on another stream or the same. */
static void
add_twice(struct worker *worker)
{
    int32_t a[MOST], b[MOST], got[MOST];
    const size_t n = 1 + draw(worker, MOST);
    for (size_t i = 0; i < n; i++) {
        a[i] = (int32_t)draw(worker, 1000);
        b[i] = (int32_t)draw(worker, 1000);
    }
    void *const streams[] = {draw_stream(worker), draw_stream(worker), draw_stream(worker)};
    void *const run = draw_stream(worker);
    struct device_buffer *const blocks[] = {operand(worker, streams[0], a, n), operand(worker, streams[1], b, n),
                                            take(worker, streams[2], n * sizeof *a)};
    struct plan plan = {.route = ROUTE_DEVICE,
                        .component = COMPONENT_I32,
                        .n = n,
                        .a = device_buffer_memory(blocks[0]),
                        .b = device_buffer_memory(blocks[1]),
                        .c = device_buffer_memory(blocks[2]),
                        .device = worker->device,
                        .stream = run};
    for (int i = 0; i < 3; i++)
        join(&plan, streams[i]);
    const struct device_work work = device_work_of(&plan);
    struct status status;
    CHECK(device_add(&work, &status) == 0, "%s", status.text);
    plan.b = plan.c;
    CHECK(device_add(&work, &status) == 0, "%s", status.text);
    device_buffer_drop(blocks[0]);
    drop_after(blocks[1], run);
    CHECK(device_copy(worker->device, streams[2], COPY_OUT, got, plan.c, n * sizeof *got, &status) == 0, "%s",
          status.text);
    bool right = true;
    for (size_t i = 0; i < n; i++)
        right = right && got[i] == 2 * a[i] + b[i];
    CHECK(right, "device %d, %zu elements", worker->device, n);
    device_buffer_drop(blocks[2]);
}

static void *
work(void *argument)
{
    struct worker *worker = argument;
    for (; worker->rounds < MIN_ROUNDS || now() < deadline; worker->rounds++) {
        add_twice(worker);
        if (draw(worker, 50) == 0)
            device_buffers_release();
        if (draw(worker, 50) == 0)
            device_pools_trim();
    }
    return NULL;
}

TEST(sums_are_right_and_all_memory_comes_back)
{
    static struct worker workers[THREADS];
    const char *seconds = getenv("VECADD_TEST_SECONDS");
    deadline = now() + (seconds ? strtod(seconds, NULL) : 2);
    for (int device = 0; device < DEVICES; device++)
        shared_streams[device] = double_stream_create(device, 1);
    for (int i = 0; i < THREADS; i++) {
        const int device = i % DEVICES;
        workers[i] = (struct worker){.random = (unsigned)i, .device = device, .own = double_stream_create(device, 1)};
        CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    device_buffers_release();
    device_pools_trim();
    for (int device = 0; device < DEVICES; device++)
        double_synchronize(device);
    CHECK(double_faults() == 0);
    CHECK(memory_counts().device_blocks == 0 && memory_counts().device_bytes == 0);
    CHECK(live_now().device_blocks == 0);
}
