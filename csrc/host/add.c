#include "host/add.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/fpenv.h"
#include "host/threads.h"

/* Short floats never take the narrower vectors: conversions bound their speed, and longer vectors convert faster, 1.6
 * to 1.9 times on Cascade Lake, from its L2. */
static const struct host_simd *
level(const struct host_schedule *schedule, enum component component)
{
    const struct host_simd *simd = schedule->simd;
    return schedule->narrow && simd->narrower && !component_is_short_float(component) ? simd->narrower : simd;
}

host_add_function *
host_loop(const struct host_schedule *schedule, enum component component, bool streaming)
{
    const struct host_simd *simd = level(schedule, component);
    return streaming ? simd->stream[component] : simd->add[component];
}

host_add_function *
host_loop_with_one(const struct host_schedule *schedule, enum component component)
{
    const struct host_simd *simd = level(schedule, component);
    return schedule->streaming ? simd->stream_one[component] : simd->add_one[component];
}

struct run {
    host_add_function *add, *stream;
    const char *a, *b;
    char *c;
    size_t size; /* bytes a component */
    size_t n;    /* components */
    size_t skip; /* components of the block grid before c's first one */
};

/* threads_body: the components of [begin, end) of the block grid. */
static void
add_block(void *context, size_t begin, size_t end, int worker)
{
    const struct run *run = context;
    (void)worker;
    begin = begin > run->skip ? begin - run->skip : 0;
    end = end > run->skip ? end - run->skip : 0;
    if (begin < end)
        run->add(run->a + begin * run->size, run->b + begin * run->size, run->c + begin * run->size, end - begin);
}

/* The whole sum by streaming stores, where no worker takes part. */
static void
stream_all(void *context)
{
    const struct run *run = context;
    run->stream(run->a, run->b, run->c, run->n);
}

static unsigned
add_alone(host_add_function *add, bool floating, const void *a, const void *b, void *c, size_t n)
{
    if (!floating) {
        add(a, b, c, n);
        return 0;
    }
    const fpenv_word environment = fpenv_begin();
    add(a, b, c, n);
    return fpenv_end(environment);
}

unsigned
host_add(const struct host_schedule *schedule, enum component component, const void *a, const void *b, void *c,
         size_t n)
{
    if (n == 0)
        return 0;
    host_add_function *add = host_loop(schedule, component, schedule->streaming);
    if (schedule->threads <= 1)
        return add_alone(add, component_is_float(component), a, b, c, n);

    /* Blocks begin where c's address is a multiple of their size: no two threads write to one cache line, and one
     * thread alone touches a fresh huge page first. */
    const size_t size = component_size[component], skip = (uintptr_t)c % (schedule->block * size) / size;
    struct run run = {.add = add,
                      .stream = host_loop(schedule, component, true),
                      .a = a,
                      .b = b,
                      .c = c,
                      .size = size,
                      .n = n,
                      .skip = skip};
    const struct fallback_loop alone = {stream_all, &run};
    return threads_run(schedule, n + skip, add_block, &run, schedule->streams_alone ? &alone : schedule->fallback);
}

/* --- Many additions as one job of the thread pool. */

/* The threads share out the bytes of all sums, one sum after the other, in units of this size; no component crosses a
 * unit's boundary. */
enum { UNIT = 16 };

struct batch_job {
    const struct batch_add *adds;
    const size_t *first; /* each addition's first unit, then the end of the last one */
    size_t count;
    const struct host_schedule *schedule; /* its block counts units */
};

static size_t
units_of(const struct batch_add *add)
{
    return (add->n * component_size[add->component] + UNIT - 1) / UNIT;
}

/* The addition that a unit belongs to; never an empty one. */
static size_t
find_add(const struct batch_job *job, size_t unit)
{
    size_t low = 0, high = job->count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (job->first[middle] <= unit)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* In place the cache line to be written has been read already, so a streaming store gains nothing (schedule.c). */
static void
add_piece(const struct batch_job *job, const struct batch_add *add, size_t begin, size_t end)
{
    const size_t size = component_size[add->component], from = begin * UNIT, to = end * UNIT, bytes = add->n * size;
    const bool streaming = job->schedule->streaming && add->c != add->a && add->c != add->b;
    host_add_function *function = host_loop(job->schedule, add->component, streaming);
    function((const char *)add->a + from, (const char *)add->b + from, (char *)add->c + from,
             ((to < bytes ? to : bytes) - from) / size);
}

static void
add_units(void *context, size_t begin, size_t end, int worker)
{
    const struct batch_job *job = context;
    (void)worker;
    for (size_t i = find_add(job, begin); begin < end; i++) {
        const size_t stop = job->first[i + 1] < end ? job->first[i + 1] : end;
        if (begin < stop)
            add_piece(job, &job->adds[i], begin - job->first[i], stop - job->first[i]);
        begin = stop;
    }
}

int
host_batch_schedule(struct host_schedule *schedule, size_t bytes, struct status *status)
{
    return host_schedule(
        schedule, &(struct host_request){.component = COMPONENT_I8, .n = bytes, .moved = 3 * bytes, .unit = UNIT},
        status);
}

int
host_add_batch(const struct host_schedule *schedule, const struct batch_add *adds, size_t count, unsigned *flags,
               struct status *status)
{
    *flags = 0;
    size_t *first = malloc((count + 1) * sizeof *first);
    if (!first)
        return status_set(status, STATUS_MEMORY, "there is no memory for a table of %zu additions", count);
    first[0] = 0;
    for (size_t i = 0; i < count; i++)
        first[i + 1] = first[i] + units_of(&adds[i]);

    struct batch_job job = {.adds = adds, .first = first, .count = count, .schedule = schedule};
    if (first[count])
        *flags = threads_run(schedule, first[count], add_units, &job, NULL);
    free(first);
    return 0;
}
