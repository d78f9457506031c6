#include "host/thresholds.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/min_max.h"
#include "base/tuned_file.h"
#include "host/cache.h"
#include "host/threads_count.h"

/* Defaults without a tuned file, for float32. They were decided in November 2026 by runs on 2 cores of Cascade Lake and
 * of an EPYC (1 MiB of L2 each), and on 2 and 16 cores of Sapphire Rapids (2 MiB), whose files are not kept. On any
 * machine `vecadd tune host` compares threads, shares, blocks and streaming stores anew.
 *
 * Workers that are awake clearly pay from sums of 256 KiB on: two threads took 0.53 of one thread's time on Cascade
 * Lake, four 0.47 on Sapphire Rapids. At 128 KiB two took 0.7 to 1.1 and 0.71, a gain that the caller's own work
 * between two sums may undo; four took 0.64 on Sapphire Rapids. All sleeping workers are woken from THREADS_ASLEEP on.
 * Whether they pay for smaller sums differs: at 2 MiB an isolated call with two threads took 606 us on Cascade Lake
 * against one thread's 533, with sixteen 65 on Sapphire Rapids against 209. So there host/ways.h decides.
 *
 * Streaming stores pay when the arrays are larger than the caches of all the threads together. A virtual machine hides
 * the caches beside the L2 or overstates them, so CACHED stands for them: on the EPYC two threads with streaming stores
 * took 1.2 times as long for 3 MiB of arrays, as long for 12 and half as long for 48. Above CACHED the times of the
 * calls themselves decide (host/stores.h). In place they never pay, because the cache line to be written has been read
 * already: 36 against 81 GB/s at 4 MiB on Sapphire Rapids.
 *
 * On Cascade Lake AVX-512 lowers the clock by a step, and costs some microseconds after a pause: AVX2 took 0.93 to 0.95
 * of its time for sums on fresh pages, 0.86 after a pause from 512 KiB on, and 0.87 back to back from 4 MiB on; but
 * twice as long in an L1, where NARROW leaves AVX-512. On Sapphire Rapids AVX2 was nowhere clearly ahead. */
enum {
    THREADS_AWAKE = 256 << 10,
    FOUR_AWAKE = 128 << 10, /* where there are four */
    THREADS_ASLEEP = 16 << 20,
    NARROW = 64 << 10,
    CACHED = 16 << 20, /* bytes of the three arrays that the caches are assumed to hold */
    MAY_FIT = 4, /* times the size from which several threads stream: caches may yet hold the arrays. On two cores of an
                  * EPYC with an L3 of 32 MiB, arrays of 16 to 28 MiB that were added again took 0.4 to 0.9 of the time
                  * with ordinary stores, others 1.2 */
    L2_AT_MIN = 1 << 20,
    SHARE = 32 << 10,  /* 256 KiB on Sapphire Rapids: 1, 2, 4, 8, 16 threads took 9.0, 7.0, 4.6, 3.2, 2.9 us */
    BLOCK = 256 << 10, /* 16 threads of Sapphire Rapids: 64 KiB and 1 MiB gave 6 and 3 % less, 16 KiB 8 % */
    BLOCK_MIN = 16 << 10,
    BLOCK_MAX = 64 << 20,
};

enum { MODEL = 128 };

/* The processor's model: a name on x86, a number on Arm. */
static void
read_model(char model[MODEL])
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "re");
    strcpy(model, "unknown processor");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strstr(line, ": ");
        if (colon && (strncmp(line, "model name", 10) == 0 || strncmp(line, "CPU part", 8) == 0)) {
            snprintf(model, MODEL, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    if (file)
        fclose(file);
}

void
host_key(char *key, size_t size)
{
    char model[MODEL];
    read_model(model);
    snprintf(key, size, "%s, %d threads", model, threads_usual());
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
    return !named && long_vectors_cost() ? NARROW : HOST_NEVER;
}

static struct host_thresholds
shipped(void)
{
    const size_t l2 = larger(host_cache_bytes(2), L2_AT_MIN),
                 together = larger((size_t)threads_usual() * l2, CACHED) / 3;
    return (struct host_thresholds){.threads_awake = threads_usual() < 4 ? THREADS_AWAKE : FOUR_AWAKE,
                                    .threads_asleep = THREADS_ASLEEP,
                                    .stream_alone = larger(l2, CACHED) / 3,
                                    .stream_together = together,
                                    .spills = MAY_FIT * together,
                                    .share = SHARE,
                                    .block = BLOCK,
                                    .narrow = narrow_from(),
                                    .cached = (size_t)threads_usual() * l2 / 2 / 3,
                                    .l2 = l2,
                                    .threads_streaming = SIZE_MAX,
                                    .learns = true};
}

static bool
take_row(void *context, const char *name, const double *number, int count)
{
    struct host_thresholds *found = context;
    const struct {
        const char *name;
        size_t *place;
    } rows[] = {
        {"threads_awake", &found->threads_awake},
        {"threads_asleep", &found->threads_asleep},
        {"stream_alone", &found->stream_alone},
        {"stream_together", &found->stream_together},
        {"share", &found->share},
        {"block", &found->block},
        {"narrow", &found->narrow},
        {"threads_streaming", &found->threads_streaming},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(name, rows[i].name) == 0 && count == 1 && *number >= 1 && *number <= (double)HOST_NEVER) {
            *rows[i].place = (size_t)*number;
            found->learns &= rows[i].place != &found->threads_asleep;
            return true;
        }
    return false;
}

static bool
makes_sense(const struct host_thresholds *found)
{
    return found->block >= BLOCK_MIN && found->block <= BLOCK_MAX && (found->block & (found->block - 1)) == 0;
}

const struct host_thresholds *
host_thresholds(void)
{
    static struct host_thresholds *_Atomic known;
    static const struct host_thresholds without_memory = {.threads_awake = HOST_NEVER,
                                                          .threads_asleep = HOST_NEVER,
                                                          .stream_alone = HOST_NEVER,
                                                          .stream_together = HOST_NEVER,
                                                          .share = SHARE,
                                                          .block = BLOCK,
                                                          .narrow = HOST_NEVER,
                                                          .threads_streaming = SIZE_MAX};
    struct host_thresholds *thresholds = atomic_load_explicit(&known, memory_order_acquire);
    if (thresholds)
        return thresholds;
    thresholds = malloc(sizeof *thresholds);
    if (thresholds == NULL)
        return &without_memory;
    char key[HOST_KEY];
    struct host_thresholds found = *thresholds = shipped();
    host_key(key, sizeof key);
    if (tuned_file_read("host", key, take_row, &found) && makes_sense(&found)) {
        *thresholds = found;
        thresholds->threads_asleep = larger(found.threads_awake, found.threads_asleep);
        /* `vecadd tune` adds other arrays each time: it may find streaming stores quicker from less on. */
        thresholds->spills = larger(found.spills, MAY_FIT * found.stream_together);
        thresholds->tuned = true;
    }
    struct host_thresholds *first = NULL;
    if (atomic_compare_exchange_strong(&known, &first, thresholds))
        return thresholds;
    free(thresholds);
    return first;
}
