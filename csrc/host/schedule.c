#include "host/schedule.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/machine.h"
#include "base/util.h"

/* --- How many threads. */

static atomic_int usable, available; /* 0: not determined yet */
static atomic_int allowed;           /* cpus_allowed(), when `usable` was determined */
static atomic_int chosen;            /* by threads_choose; 0: not */

int
processors_usable(void)
{
    int count = atomic_load_explicit(&usable, memory_order_relaxed);
    if (count == 0) {
        atomic_store_explicit(&allowed, cpus_allowed(), memory_order_relaxed);
        count = cpus_usable();
        atomic_store_explicit(&usable, count, memory_order_relaxed);
    }
    return count;
}

/* The number in the environment's variable; 0 if it is not set, -1 if it is not a number of threads. */
static int
number_in_environment(void)
{
    const char *text = getenv(THREADS_VARIABLE);
    char *end;
    if (text == NULL || *text == '\0')
        return 0;
    const long number = strtol(text, &end, 10);
    return *end == '\0' && number >= 1 && number <= THREADS_MAX ? (int)number : -1;
}

const char *
threads_invalid_variable(void)
{
    return number_in_environment() < 0 ? getenv(THREADS_VARIABLE) : NULL;
}

int
threads_usual(void)
{
    const int number = number_in_environment();
    if (number > 0)
        return number;
    const int cpus = processors_usable();
    return cpus < THREADS_MAX ? cpus : THREADS_MAX;
}

/* Whether a process that had one processor may use more by now. Its jobs don't notice: they have no workers. */
static bool
has_got_more(void)
{
    return atomic_load_explicit(&usable, memory_order_relaxed) == 1 &&
           atomic_load_explicit(&allowed, memory_order_relaxed) != cpus_allowed();
}

int
threads_available(void)
{
    int count = atomic_load_explicit(&available, memory_order_relaxed);
    if (count == 1 && has_got_more()) {
        threads_count_forget();
        count = 0;
    }
    if (count == 0) {
        count = atomic_load_explicit(&chosen, memory_order_relaxed);
        if (count == 0)
            count = threads_usual();
        int undetermined = 0; /* a choice of another thread's stays */
        if (!atomic_compare_exchange_strong(&available, &undetermined, count))
            count = undetermined;
    }
    return count;
}

int
threads_choose(int count)
{
    threads_available(); /* so that there is a number to give back */
    atomic_store(&chosen, count);
    return atomic_exchange(&available, count);
}

void
threads_count_forget(void)
{
    atomic_store(&usable, 0);
    atomic_store(&available, 0);
}

/* --- The instruction set. */

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

/* --- From which sizes on. */

/* Measured for float32 in November 2026 on 2 cores of Cascade Lake and of an EPYC (1 MiB of L2 each), and on 2 and 16
 * cores of Sapphire Rapids (2 MiB).
 *
 * AWAKE: workers that are awake clearly pay from 256 KiB on: two threads took 0.53 of one thread's time on Cascade
 * Lake, four 0.47 on Sapphire Rapids. At 128 KiB two took 0.7 to 1.1 and 0.71, a gain that the caller's own work
 * between two sums may undo; four took 0.64 on Sapphire Rapids.
 *
 * WAKE: on two cores of an EPYC a wake costs some 20 us: after a pause of 1 ms 512 KiB took 15 us alone and 26 with the
 * second thread, 1 MiB 32 and 38. On sixteen cores of Sapphire Rapids waking from 512 KiB on took 0.92 to 1.02, by
 * form, of the time of a choice by what earlier calls had taken.
 *
 * CACHED: streaming stores pay when the arrays are larger than the caches of all the threads together. A virtual
 * machine hides the caches beside the L2 or overstates them, so that CACHED is assumed: on the EPYC two threads with
 * streaming stores took 1.5 times as long for 24 MiB of arrays, 1.4 times for 32, and as long for 48. In place they
 * never pay, because the cache line to be written has been read already: 36 against 81 GB/s at 4 MiB on Sapphire
 * Rapids.
 *
 * moved: kept sums of 2 to 8 MiB, which are at another address each time, took two threads of the EPYC 0.72 to 0.77 of
 * the time by streaming stores, those of 256 KiB 1.9 and those of 1 MiB as long. One thread, after a pause, took 0.8 to
 * 0.9 from 256 KiB to 1 MiB. Two outputs that take turns, as of x = a + b and y = x + c, are read from the caches: at 2
 * to 8 MiB they took 1.6 to 1.9 times as long by streaming stores.
 *
 * NARROW: on Cascade Lake AVX-512 lowers the clock by a step, and costs some microseconds after a pause: AVX2 took 0.93
 * to 0.95 of its time for sums on fresh pages, 0.86 after a pause from 512 KiB on, and 0.87 back to back from 4 MiB on;
 * but twice as long in an L1, where AVX-512 stays. On Sapphire Rapids AVX2 was nowhere clearly ahead. */
enum {
    FOUR = 4, /* threads: fewer have the second of two constants */
    AWAKE = 128 << 10,
    AWAKE_FEW = 256 << 10,
    WAKE = 512 << 10,
    WAKE_FEW = 2 << 20,
    CACHED = 16 << 20, /* bytes of the three arrays that the caches are assumed to contain */
    CACHED_FEW = 40 << 20,
    L2_MIN = 1 << 20,
    MOVED_ALONE = 256 << 10,
    NARROW = 64 << 10,
    SHARE = 32 << 10, /* the least bytes a thread where there are more than two. 256 KiB on Sapphire Rapids: 1, 2, 4,
                       * 8, 16 threads took 9.0, 7.0, 4.6, 3.2, 2.9 us */
    BLOCK_MIN = 16 << 10,      /* bytes of c; the block of c and those of a and b fit an L1 cache */
    BLOCK_MAX = 256 << 10,     /* 16 threads of Sapphire Rapids: 64 KiB and 1 MiB gave 6 and 3 % less, 16 KiB 8 % */
    BLOCKS_A_THREAD = 4,       /* at least, if c is large enough */
    BYTES_A_START = 256 << 10, /* for each missing worker that a sum starts beside the first: that costs the caller 20
                                * to 40 us */
    STAY_FROM = 9, /* threads from which each stays in its slice: on Sapphire Rapids two to eight took as long
                    * either way, sixteen 0.83 to 0.9 for 2^17 to 2^20 float32 */
};

/* Reads one word of the kernel's description of a cache of processor 0. */
static bool
read_word(int index, const char *name, char word[16])
{
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    const bool found = fscanf(file, "%15s", word) == 1;
    fclose(file);
    return found;
}

static size_t
from_sysfs(int level)
{
    char found[16], type[16], size[16];
    for (int index = 0; read_word(index, "level", found); index++) {
        int number;
        size_t kilobytes;
        if (sscanf(found, "%d", &number) != 1 || number != level)
            continue;
        if (!read_word(index, "type", type) || strcmp(type, "Instruction") == 0)
            continue;
        if (read_word(index, "size", size) && sscanf(size, "%zuK", &kilobytes) == 1)
            return kilobytes << 10;
    }
    return 0;
}

/* glibc asks the processor, which works without /sys too, but only on x86. */
static size_t
from_sysconf(int level)
{
#if defined(_SC_LEVEL1_DCACHE_SIZE)
    const int names[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
    const long bytes = sysconf(names[level - 1]);
    return bytes > 0 ? (size_t)bytes : 0;
#else
    return (void)level, 0;
#endif
}

size_t
host_cache_bytes(int level)
{
    if (level < 1 || level > 3)
        return 0;
    const size_t bytes = from_sysconf(level);
    return bytes ? bytes : from_sysfs(level);
}

/* Whether AVX-512 lowers the clock: on all x86 processors up to Ice Lake that have it. Sapphire Rapids, the first that
 * does not, is the first with AVX512-FP16. */
static bool
long_vectors_cost(void)
{
#if defined(__x86_64__)
    enum { AVX512_FP16 = 1 << 23 };
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & AVX512_FP16) == 0;
#else
    return false;
#endif
}

/* A level that VECADD_SIMD names is used at every size. */
static size_t
narrow_from(void)
{
    const char *wish = getenv("VECADD_SIMD");
    const bool named = wish && *wish;
    return !named && long_vectors_cost() ? NARROW : SIZE_MAX;
}

/* Reads VECADD_WAKE_BYTES into *bytes. Returns whether it is unset or a number of bytes. */
static bool
read_wake_bytes(size_t *bytes)
{
    const char *text = getenv(WAKE_VARIABLE);
    char *end;
    if (text == NULL || *text == '\0')
        return true;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    if (errno || *end || *text < '0' || *text > '9')
        return false;
    *bytes = (size_t)number;
    return true;
}

const char *
host_invalid_wake_variable(void)
{
    size_t bytes;
    return read_wake_bytes(&bytes) ? NULL : getenv(WAKE_VARIABLE);
}

static struct host_thresholds thresholds;
static atomic_bool determined;

static void
determine_thresholds(void)
{
    const size_t threads = (size_t)threads_usual(), l2 = larger(host_cache_bytes(2), L2_MIN);
    const bool few = threads < FOUR;
    size_t wake = few ? WAKE_FEW : WAKE;
    read_wake_bytes(&wake);
    thresholds = (struct host_thresholds){
        .awake = few ? AWAKE_FEW : AWAKE,
        .wake = wake,
        .stream_alone = larger(l2, CACHED) / 3,
        .stream_together = larger(threads * l2, few ? CACHED_FEW : CACHED) / 3,
        .moved_alone = few ? MOVED_ALONE : SIZE_MAX,
        .moved = few ? 2 * l2 : SIZE_MAX,
        .cached = threads * l2 / 2 / 3,
        .narrow = narrow_from(),
    };
    thresholds.least =
        smaller(smaller(thresholds.awake, thresholds.wake), smaller(thresholds.stream_alone, thresholds.moved_alone));
    atomic_store_explicit(&determined, true, memory_order_release);
}

const struct host_thresholds *
host_thresholds(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!atomic_load_explicit(&determined, memory_order_acquire))
        pthread_once(&once, determine_thresholds);
    return &thresholds;
}

/* --- The decision. */

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

/* Bytes of the sum that a thread takes at a time. */
static size_t
block_for(size_t bytes, int threads)
{
    const size_t wish = bytes / (size_t)(threads * BLOCKS_A_THREAD);
    size_t block = BLOCK_MIN;
    while (block < BLOCK_MAX && block < wish)
        block *= 2;
    return block;
}

/* How many threads share a sum of that size, if it is large enough for threads: two at least if it has two blocks. */
static int
threads_for(size_t bytes)
{
    const size_t most = smaller(larger(bytes / SHARE, 2), bytes / BLOCK_MIN);
    return (int)smaller((size_t)threads_available(), larger(most, 1));
}

/* In place c has been read already: a streaming store saves no read. */
static void
choose_stores(struct host_schedule *schedule, const struct host_request *request, size_t bytes)
{
    const struct host_thresholds *from = host_thresholds();
    if (request->stores != STORES_BY_SIZE)
        schedule->streaming = request->stores == STORES_STREAMING;
    else if (!request->in_place && !request->short_rows) {
        const bool alone = schedule->threads <= 1;
        const bool moved = bytes >= from->moved_alone && request->c && output_address_changed(bytes, request->c);
        schedule->streaming = request->moved / 3 >= (alone ? from->stream_alone : from->stream_together) ||
                              (moved && (alone || bytes >= from->moved));
        schedule->streams_alone = moved && !schedule->streaming && (!request->below || schedule->wakes);
    }
}

int
host_schedule(struct host_schedule *schedule, const struct host_request *request, struct status *status)
{
    *schedule = (struct host_schedule){.simd = host_simd_chosen(status), .threads = 1};
    if (!schedule->simd)
        return -1;
    const struct host_thresholds *from = host_thresholds();
    const size_t bytes = request->n * component_size[request->component];
    schedule->narrow = bytes >= from->narrow;
    if (bytes < from->least && !request->threads)
        return 0;
    schedule->threads = request->threads                           ? request->threads
                        : bytes < smaller(from->awake, from->wake) ? 1
                                                                   : threads_for(bytes);
    schedule->wakes = request->threads || bytes >= from->wake;
    choose_stores(schedule, request, bytes);
    if (schedule->threads <= 1)
        return 0;
    schedule->fallback = schedule->streaming || schedule->wakes ? NULL : request->below;
    schedule->starts = (int)smaller(1 + bytes / BYTES_A_START, THREADS_MAX);
    schedule->stays_in_slice =
        schedule->threads >= STAY_FROM && !schedule->streaming && request->moved / 3 < from->cached;
    const size_t block = request->block ? request->block : block_for(bytes, schedule->threads);
    schedule->block = block / component_size[request->component] / request->unit;
    return 0;
}
