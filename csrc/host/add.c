#include "host/add.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fpenv.h"
#include "host/threads.h"

const struct host_simd *const host_simd_levels[] = {
#if defined(__x86_64__)
    &host_simd_avx512,
    &host_simd_avx2,
#elif defined(__aarch64__)
    &host_simd_neon,
#endif
    &host_simd_c,
    NULL,
};

static const struct host_simd *
choose_simd(struct status *status)
{
    const char *wish = getenv("VECADD_SIMD");
    char working[128] = "";
    for (size_t i = 0; host_simd_levels[i]; i++) {
        const struct host_simd *level = host_simd_levels[i];
        if (!level->supported())
            continue;
        if (wish == NULL || *wish == '\0' || strcmp(wish, level->name) == 0)
            return level;
        const size_t used = strlen(working);
        snprintf(working + used, sizeof working - used, "%s%s", used ? ", " : "", level->name);
    }
    status_set(status, STATUS_VALUE, "VECADD_SIMD is \"%s\"; this machine and build have %s", wish ? wish : "",
               working);
    return NULL;
}

const struct host_simd *
host_simd_chosen(struct status *status)
{
    static _Atomic(const struct host_simd *) chosen;
    const struct host_simd *simd = atomic_load_explicit(&chosen, memory_order_acquire);
    if (simd == NULL) {
        simd = choose_simd(status);
        atomic_store_explicit(&chosen, simd, memory_order_release);
    }
    return simd;
}

/* Short floats never take the narrower vectors: conversions bound their speed, and longer vectors convert faster, 1.6
 * to 1.9 times on Cascade Lake, from its L2. */
static const struct host_simd *
level(const struct host_simd *simd, const struct host_schedule *schedule, enum component component)
{
    return schedule->narrow && simd->narrower && !component_is_short_float(component) ? simd->narrower : simd;
}

host_add_function *
host_loop(const struct host_simd *simd, const struct host_schedule *schedule, enum component component, bool streaming)
{
    simd = level(simd, schedule, component);
    return streaming ? simd->stream[component] : simd->add[component];
}

host_add_function *
host_loop_with_one(const struct host_simd *simd, const struct host_schedule *schedule, enum component component,
                   bool streaming)
{
    simd = level(simd, schedule, component);
    return streaming ? simd->stream_one[component] : simd->add_one[component];
}

unsigned
host_run(const struct host_schedule *schedule, size_t n, size_t bytes, threads_body *body, void *context)
{
    return threads_run(&(struct threads_job){.threads = schedule->threads,
                                             .wakes = schedule->wakes,
                                             .stays_in_slice = schedule->stays_in_slice,
                                             .bytes = bytes,
                                             .n = n,
                                             .block = schedule->block,
                                             .body = body,
                                             .context = context,
                                             .fallback = schedule->fallback});
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

/* Whether the sum is written elsewhere than each of the last RECENT of about as many bytes, as where a program keeps
 * its sums. Any thread may call this; it takes no lock. */
static bool
output_address_changed(size_t bytes, const void *c)
{
    enum { CLASSES = sizeof(size_t) * CHAR_BIT }; /* of sizes, each twice the one before */
    enum { RECENT = 4 };                          /* x = a + b and y = x + c in a loop have two */
    static struct {
        const void *_Atomic address[RECENT];
        atomic_uint next;
    } recent[CLASSES];
    const int class = CLASSES - 1 - __builtin_clzl(bytes | 1);
    for (int i = 0; i < RECENT; i++)
        if (atomic_load_explicit(&recent[class].address[i], memory_order_relaxed) == c)
            return false;
    const unsigned next = atomic_fetch_add_explicit(&recent[class].next, 1, memory_order_relaxed);
    atomic_store_explicit(&recent[class].address[next % RECENT], c, memory_order_relaxed);
    return true;
}

unsigned
host_add(const struct host_simd *simd, const struct host_schedule *schedule, enum component component, const void *a,
         const void *b, void *c, size_t n)
{
    if (n == 0)
        return 0;
    const size_t size = component_size[component];
    const bool moved = schedule->moved != NOT_STREAMED && output_address_changed(n * size, c);
    const bool streaming = schedule->streaming || (moved && (schedule->moved == STREAMED || schedule->threads <= 1));
    host_add_function *add = host_loop(simd, schedule, component, streaming);
    if (schedule->threads <= 1)
        return add_alone(add, component_is_float(component), a, b, c, n);

    /* Blocks begin where c's address is a multiple of their size: no two threads write to one cache line, and one
     * thread alone touches a fresh huge page first. */
    const size_t skip = (uintptr_t)c % (schedule->block * size) / size;
    struct run run = {.add = add,
                      .stream = host_loop(simd, schedule, component, true),
                      .a = a,
                      .b = b,
                      .c = c,
                      .size = size,
                      .n = n,
                      .skip = skip};
    const struct fallback_loop alone = {stream_all, &run};
    struct host_schedule chosen = *schedule;
    if (moved && !streaming && !chosen.fallback)
        chosen.fallback = &alone;
    return host_run(&chosen, n + skip, n * size, add_block, &run);
}

/* --- Many additions as one job of the thread pool. */

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
