#include "host/batch.h"

#include <stdlib.h>

/* The threads share out the bytes of all sums, one sum after the other, in units of this size; no component crosses a
 * unit's boundary. */
enum { UNIT = 16 };

struct batch_job {
    const struct host_simd *simd;
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
    host_add_function *function = host_loop(job->simd, job->schedule, add->component, streaming);
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

struct host_schedule
host_add_batch_schedule(size_t bytes)
{
    return host_schedule(
        &(struct host_request){.component = COMPONENT_I8, .n = bytes, .moved = 3 * bytes, .unit = UNIT});
}

int
host_add_batch(const struct host_simd *simd, const struct host_schedule *schedule, const struct batch_add *adds,
               size_t count, unsigned *flags, struct status *status)
{
    *flags = 0;
    size_t *first = malloc((count + 1) * sizeof *first);
    if (!first)
        return status_set(status, STATUS_MEMORY, "there is no memory for a table of %zu additions", count);
    first[0] = 0;
    for (size_t i = 0; i < count; i++)
        first[i + 1] = first[i] + units_of(&adds[i]);

    struct batch_job job = {.simd = simd, .adds = adds, .first = first, .count = count, .schedule = schedule};
    if (first[count])
        *flags = host_run(schedule, first[count], first[count] * UNIT, add_units, &job);
    free(first);
    return 0;
}
