#include "host.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fpenv.h"
#include "threads.h"

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

/* Measured with float32 on 2 and on 16 cores of Sapphire Rapids, 2 MiB of L2 each.
 *
 * Threads pay from 2^18 elements. In bursts they would from 2^15, but a call by itself has to wake the pool, which
 * costs 3-15 us, and to move half of what lies in one L2 into others: at 2^16 and 2^17 such calls took 23 and 50 us
 * with two threads, 8 and 16 with one; at 2^18, 42 with 16 and 143 with one.
 *
 * Streaming stores pay when the arrays are larger than the L2 of all the threads together: from 2^18 with one thread,
 * 2^19 with two (2^20: 46 against 30 GB/s), 2^22 with 16. In place they never do, because the line to be written has
 * been read already: 36 against 81 GB/s at 2^20. */
enum {
    THREADS_PAY_FROM = 1 << 20, /* bytes of c, as those below */
    BLOCK_MIN = 16 << 10,       /* with its share of a and b what an L1 cache holds */
    BLOCK_MAX = 256 << 10,      /* 16 threads: 64 KiB and 1 MiB give 6 and 3 % less, 16 KiB 8 % */
    BLOCKS_A_THREAD = 4,        /* at least, where c is large enough for it */
};

static size_t
l2_bytes(void)
{
    static atomic_size_t known;
    size_t bytes = atomic_load_explicit(&known, memory_order_relaxed);
    if (bytes == 0) {
        bytes = host_cache_bytes(2);
        if (bytes == 0)
            bytes = 1 << 20;
        atomic_store_explicit(&known, bytes, memory_order_relaxed);
    }
    return bytes;
}

struct host_schedule
host_schedule_with(enum lane lane, size_t n, int threads, bool streaming)
{
    const size_t size = lane_size[lane], wish = n * size / (size_t)(threads * BLOCKS_A_THREAD);
    size_t block = BLOCK_MIN;
    while (block < BLOCK_MAX && block < wish)
        block *= 2;
    return (struct host_schedule){.threads = threads, .streaming = streaming, .block = block / size};
}

struct host_schedule
host_schedule_for(enum lane lane, size_t n, bool in_place)
{
    const size_t bytes = n * lane_size[lane], most = bytes / BLOCK_MIN;
    int threads = bytes >= THREADS_PAY_FROM ? threads_available() : 1;
    if ((size_t)threads > most && threads > 1)
        threads = (int)most;
    return host_schedule_with(lane, n, threads, !in_place && 3 * bytes > (size_t)threads * l2_bytes());
}

struct host_job {
    host_add_function *add;
    const char *a, *b;
    char *c;
    size_t size; /* bytes a lane */
    size_t skip; /* lanes of the block grid before the first of c */
};

static void
add_block(void *context, size_t begin, size_t end, int worker)
{
    const struct host_job *job = context;
    (void)worker;
    begin = begin > job->skip ? begin - job->skip : 0;
    end = end > job->skip ? end - job->skip : 0;
    if (begin < end)
        job->add(job->a + begin * job->size, job->b + begin * job->size, job->c + begin * job->size, end - begin);
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
host_add(const struct host_simd *simd, const struct host_schedule *schedule, enum lane lane, const void *a,
         const void *b, void *c, size_t n)
{
    host_add_function *add = schedule->streaming ? simd->stream[lane] : simd->add[lane];
    if (n == 0)
        return 0;
    if (schedule->threads <= 1)
        return add_alone(add, lane >= LANE_F16, a, b, c, n);

    /* Blocks begin where c's address is a multiple of their size: no cache line is written by two threads, and a fresh
     * huge page is touched first by one. */
    const size_t size = lane_size[lane], skip = (uintptr_t)c % (schedule->block * size) / size;
    struct host_job job = {.add = add, .a = a, .b = b, .c = c, .size = size, .skip = skip};
    return threads_run(schedule->threads, n + skip, schedule->block, add_block, &job);
}
