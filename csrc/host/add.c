#include "host/add.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fpenv.h"
#include "base/min_max.h"
#include "host/threads.h"
#include "host/thresholds.h"

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

enum {
    BLOCK_MIN = 16 << 10, /* bytes of c; the block of c and those of a and b fit an L1 cache */
    BLOCKS_A_THREAD = 4,  /* at least, if c is large enough */
    KEEPS_FROM = 9,       /* threads: on Sapphire Rapids two to eight took as long either way, sixteen 0.83 to 0.9 for
                           * 2^17 to 2^20 float32 */
};

static bool
keeps(const struct host_schedule *schedule, size_t bytes)
{
    return !schedule->streaming && schedule->threads >= KEEPS_FROM && bytes < host_thresholds()->cached;
}

static struct host_schedule
cut(enum component component, size_t n, int threads, size_t largest)
{
    const size_t size = component_size[component], wish = n * size / (size_t)(threads * BLOCKS_A_THREAD);
    size_t block = BLOCK_MIN;
    while (block < largest && block < wish)
        block *= 2;
    return (struct host_schedule){.threads = threads, .block = block / size, .learns = host_thresholds()->learns};
}

struct host_schedule
host_schedule_with(enum component component, size_t n, int threads, bool streaming)
{
    const struct host_thresholds *from = host_thresholds();
    struct host_schedule schedule = cut(component, n, threads, from->block);
    schedule.wakes = true;
    schedule.learns = false;
    schedule.narrow = n * component_size[component] >= from->narrow;
    schedule.streaming = schedule.streaming_alone = streaming;
    schedule.keeps = keeps(&schedule, n * component_size[component]);
    return schedule;
}

struct host_schedule
host_schedule_for(enum component component, size_t n, bool in_place)
{
    return host_schedule_moving(component, n, in_place, 3 * n * component_size[component]);
}

struct host_schedule
host_schedule_moving(enum component component, size_t n, bool in_place, size_t moved)
{
    const struct host_thresholds *from = host_thresholds();
    const size_t bytes = n * component_size[component], blocks = bytes / BLOCK_MIN;
    const size_t most = smaller(larger(bytes / from->share, 2), blocks); /* two at least, if threads pay at all */
    const bool streaming = !in_place && moved / 3 >= from->stream_together;
    int threads = 1;
    if (bytes >= from->threads_awake || bytes >= from->threads_asleep)
        threads = threads_available();
    if (streaming && (size_t)threads > from->threads_streaming)
        threads = (int)from->threads_streaming;
    if ((size_t)threads > most && threads > 1)
        threads = most > 1 ? (int)most : 1;
    struct host_schedule schedule = cut(component, n, threads, from->block);
    schedule.wakes = bytes >= from->threads_asleep;
    schedule.narrow = bytes >= from->narrow;
    schedule.streaming_alone = !in_place && moved / 3 >= from->stream_alone;
    schedule.streaming = threads > 1 ? streaming : schedule.streaming_alone;
    schedule.keeps = keeps(&schedule, moved / 3);
    schedule.may_stream = !in_place && !schedule.streaming_alone && moved > from->l2 / 2;
    return schedule;
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

/* Whether the caches may hold a job's arrays, though it streams. */
static bool
may_fit(const struct host_schedule *schedule, size_t bytes)
{
    return schedule->streaming && schedule->learns && bytes < host_thresholds()->spills;
}

/* On two cores of an EPYC streaming stores took, of the time of ordinary ones, 0.76 for kept sums of 4 MiB, 0.84 after
 * 100 ms, and 1.7 into the same memory back to back. Not known of more than two threads. */
bool
host_ordinary_again(const struct host_schedule *schedule, size_t bytes)
{
    return schedule->learns && schedule->threads == 2 && schedule->may_stream && !schedule->streaming &&
           bytes >= host_thresholds()->l2;
}

unsigned
host_run(const struct host_schedule *schedule, size_t n, size_t bytes, const struct host_bodies *bodies, void *context)
{
    const bool again = host_ordinary_again(schedule, bytes);
    const struct threads_job job = {.threads = schedule->threads,
                                    .n = n,
                                    .block = schedule->block,
                                    .body = bodies->body,
                                    .ordinary = again || may_fit(schedule, bytes) ? bodies->ordinary : NULL,
                                    .ordinary_again = again,
                                    .sum = bodies->sum,
                                    .alone = schedule->wakes && schedule->threads > 1 ? NULL : bodies->alone,
                                    .alone_streaming = schedule->may_stream ? bodies->alone_streaming : NULL,
                                    .context = context,
                                    .keeps = schedule->keeps,
                                    .bytes = schedule->learns ? bytes : 0};
    return threads_run_job(&job);
}

struct host_job {
    host_add_function *add, *ordinary, *alone, *alone_streaming;
    const char *a, *b;
    char *c;
    size_t size;                    /* bytes a component */
    size_t n;                       /* components */
    size_t skip;                    /* components of the block grid before c's first one */
    const struct host_alone *other; /* as the schedule's */
};

static inline void
add_range(const struct host_job *job, host_add_function *add, size_t begin, size_t end)
{
    begin = begin > job->skip ? begin - job->skip : 0;
    end = end > job->skip ? end - job->skip : 0;
    if (begin < end)
        add(job->a + begin * job->size, job->b + begin * job->size, job->c + begin * job->size, end - begin);
}

static void
add_block(void *context, size_t begin, size_t end, int worker)
{
    const struct host_job *job = context;
    (void)worker;
    add_range(job, job->add, begin, end);
}

static void
add_block_ordinary(void *context, size_t begin, size_t end, int worker)
{
    const struct host_job *job = context;
    (void)worker;
    add_range(job, job->ordinary, begin, end);
}

static void
add_all(void *context, size_t begin, size_t end, int worker)
{
    const struct host_job *job = context;
    (void)begin, (void)end, (void)worker;
    if (job->other)
        job->other->add(job->other->context);
    else
        job->alone(job->a, job->b, job->c, job->n);
}

static void
add_all_streaming(void *context, size_t begin, size_t end, int worker)
{
    const struct host_job *job = context;
    (void)begin, (void)end, (void)worker;
    job->alone_streaming(job->a, job->b, job->c, job->n);
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
host_add(const struct host_simd *simd, const struct host_schedule *schedule, enum component component, const void *a,
         const void *b, void *c, size_t n)
{
    host_add_function *alone = host_loop(simd, schedule, component, schedule->streaming_alone);
    if (n == 0)
        return 0;
    if (schedule->threads <= 1)
        return add_alone(alone, component_is_float(component), a, b, c, n);

    /* Blocks begin where c's address is a multiple of their size: no two threads write to one cache line, and one
     * thread alone touches a fresh huge page first. */
    const size_t size = component_size[component], skip = (uintptr_t)c % (schedule->block * size) / size;
    const bool streaming = schedule->streaming || host_ordinary_again(schedule, n * size);
    struct host_job job = {.add = host_loop(simd, schedule, component, streaming),
                           .ordinary = host_loop(simd, schedule, component, false),
                           .alone = alone,
                           .alone_streaming = host_loop(simd, schedule, component, true),
                           .a = a,
                           .b = b,
                           .c = c,
                           .size = size,
                           .n = n,
                           .skip = skip,
                           .other = schedule->alone};
    const struct host_bodies bodies = {add_block, add_block_ordinary, add_all, add_all_streaming, c};
    return host_run(schedule, n + skip, n * size, &bodies, &job);
}
