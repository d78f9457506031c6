#include "host/limit.h"

/* The probe: plain loops by threads that spin through a round. It shares no code with the adders it bounds, but works
 * on the same arrays: arrays with other alignments modulo a page and on other pages are up to 1.2 times
 * slower. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/util.h"

enum {
    GRAIN = 16,       /* words: parts are whole cache lines long */
    BLOCK = 64 << 10, /* words that a thread takes at a time of the dynamic part */
    VARIANTS_MAX = 128,
    REST = VARIANTS_MAX,
    LOOPS_MAX = 4,
    SPINS_BEFORE_YIELD = 1000, /* another thread may need this processor */
};

/* A variant that was slower than the best by this factor is not tried again, or a round would take seconds. */
static const double hopeless = 1.25;

/* Seconds: the least that a variant's batches take together, and a batch long enough for a clock of 30 ns. */
static const double least_spent = 500e-6, long_batch = 50e-6;

/* Seconds: waking the threads does not explain a first pass this long. One of twice the best known time is hopeless. */
static const double long_pass = 10e-3;

/* Adds integers: the limit is the memory's, and random bits read as floats would be slow where they are subnormal. */
typedef void add_loop(const uint32_t *a, const uint32_t *b, uint32_t *c, size_t n);

/* Static: each thread has one stretch. Dynamic: blocks as they come. Mixed: seven eighths static, whose long stretches
 * the memory likes best, and the rest dynamic, so that no slow processor delays the pass. */
enum partition { STATIC, DYNAMIC, MIXED, PARTITIONS };

struct variant {
    int threads;
    enum partition partition;
    add_loop *add;
    double best; /* seconds; 0 before the first round */
};

struct limits_host {
    size_t n;
    const uint32_t *a, *b;
    uint32_t *c;
    struct variant variants[VARIANTS_MAX];
    int variant_count;

    pthread_t *threads;
    int workers; /* beside the caller */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool open, closing; /* a round is running; the probe is being closed */

    atomic_int numbers;  /* given out to the workers: 1, 2, ... */
    atomic_uint pass;    /* counts up in steps of 256; the low byte is the variant, or REST at a round's end */
    atomic_size_t taken; /* words of the dynamic part that threads have taken */
    atomic_int done;     /* workers that have finished the pass */
};

#if defined(__x86_64__)

#define X86_LOOP(name, isa, vector, width, load, add, store)                                                           \
    __attribute__((target(isa))) static void name(const uint32_t *a, const uint32_t *b, uint32_t *c, size_t n)         \
    {                                                                                                                  \
        size_t i = 0;                                                                                                  \
        for (; i < n && (uintptr_t)(c + i) % sizeof(vector) != 0; i++)                                                 \
            c[i] = a[i] + b[i];                                                                                        \
        for (; i + (width) <= n; i += (width))                                                                         \
            store((vector *)(c + i), add(load((const vector *)(a + i)), load((const vector *)(b + i))));               \
        for (; i < n; i++)                                                                                             \
            c[i] = a[i] + b[i];                                                                                        \
        _mm_sfence();                                                                                                  \
    }

X86_LOOP(ordinary_avx512, "avx512f", __m512i, 16, _mm512_loadu_si512, _mm512_add_epi32, _mm512_store_si512)
X86_LOOP(streaming_avx512, "avx512f", __m512i, 16, _mm512_loadu_si512, _mm512_add_epi32, _mm512_stream_si512)
X86_LOOP(ordinary_avx2, "avx2", __m256i, 8, _mm256_loadu_si256, _mm256_add_epi32, _mm256_store_si256)
X86_LOOP(streaming_avx2, "avx2", __m256i, 8, _mm256_loadu_si256, _mm256_add_epi32, _mm256_stream_si256)
X86_LOOP(ordinary_loop, "sse2", __m128i, 4, _mm_loadu_si128, _mm_add_epi32, _mm_store_si128)
X86_LOOP(streaming_loop, "sse2", __m128i, 4, _mm_loadu_si128, _mm_add_epi32, _mm_stream_si128)

/* The two widest instruction sets: the longest vectors lower the clock of some processors. */
static int
find_loops(add_loop *loops[LOOPS_MAX])
{
    int count = 0;
    if (__builtin_cpu_supports("avx512f")) {
        loops[count++] = ordinary_avx512;
        loops[count++] = streaming_avx512;
    }
    if (__builtin_cpu_supports("avx2")) {
        loops[count++] = ordinary_avx2;
        loops[count++] = streaming_avx2;
    }
    if (count == 0) {
        loops[count++] = ordinary_loop;
        loops[count++] = streaming_loop;
    }
    return count;
}

#else

static void
plain_loop(const uint32_t *restrict a, const uint32_t *restrict b, uint32_t *restrict c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        c[i] = a[i] + b[i];
}

static int
find_loops(add_loop *loops[LOOPS_MAX])
{
    loops[0] = plain_loop;
    return 1;
}

#endif

static void
add_variants(struct limits_host *probe, int threads)
{
    const bool whole = threads == 1 || probe->n <= BLOCK; /* no dynamic part */
    add_loop *loops[LOOPS_MAX];
    const int count = find_loops(loops);
    for (int partition = 0; partition < (whole ? 1 : PARTITIONS); partition++)
        for (int i = 0; i < count && probe->variant_count < VARIANTS_MAX; i++)
            probe->variants[probe->variant_count++] =
                (struct variant){.threads = threads, .partition = (enum partition)partition, .add = loops[i]};
}

static void
spin(unsigned *spins)
{
    if (++*spins % SPINS_BEFORE_YIELD == 0)
        sched_yield();
#if defined(__x86_64__)
    _mm_pause();
#endif
}

/* How many words, from the first on, are in the static part. */
static size_t
fixed_part(const struct limits_host *probe, enum partition partition)
{
    if (partition == STATIC)
        return probe->n;
    return partition == MIXED ? probe->n / 8 * 7 : 0;
}

/* One thread's part of a pass. */
static void
do_part(struct limits_host *probe, const struct variant *variant, int number)
{
    const size_t fixed = fixed_part(probe, variant->partition);
    const size_t share = (fixed / (size_t)variant->threads + GRAIN) / GRAIN * GRAIN;
    const size_t first = smaller(share * (size_t)number, fixed), last = smaller(first + share, fixed);
    if (first < last)
        variant->add(probe->a + first, probe->b + first, probe->c + first, last - first);
    if (fixed == probe->n)
        return;

    size_t begin;
    while ((begin = fixed + atomic_fetch_add(&probe->taken, BLOCK)) < probe->n)
        variant->add(probe->a + begin, probe->b + begin, probe->c + begin, smaller(BLOCK, probe->n - begin));
}

/* Returns false when the probe ends. */
static bool
wait_for_round(struct limits_host *probe)
{
    pthread_mutex_lock(&probe->mutex);
    while (!probe->open && !probe->closing)
        pthread_cond_wait(&probe->changed, &probe->mutex);
    const bool goes_on = !probe->closing;
    pthread_mutex_unlock(&probe->mutex);
    return goes_on;
}

static void *
worker_main(void *argument)
{
    struct limits_host *probe = argument;
    const int number = atomic_fetch_add(&probe->numbers, 1) + 1;
    unsigned seen = 0, spins = 0;
    while (wait_for_round(probe)) {
        do {
            unsigned pass;
            while ((pass = atomic_load(&probe->pass)) == seen)
                spin(&spins);
            seen = pass;
            const unsigned variant = pass & 0xff;
            if (variant != REST && number < probe->variants[variant].threads) {
                do_part(probe, &probe->variants[variant], number);
                atomic_fetch_add(&probe->done, 1);
            }
        } while ((seen & 0xff) != REST);
    }
    return NULL;
}

static void
start_pass(struct limits_host *probe, unsigned variant)
{
    const unsigned count = atomic_load(&probe->pass) >> 8;
    atomic_store(&probe->pass, (count + 1) << 8 | variant);
}

static void
run_pass(struct limits_host *probe, unsigned index)
{
    const struct variant *variant = &probe->variants[index];
    unsigned spins = 0;
    atomic_store(&probe->taken, 0);
    if (variant->threads == 1) {
        do_part(probe, variant, 0);
        return;
    }
    atomic_store(&probe->done, 0);
    start_pass(probe, index);
    do_part(probe, variant, 0);
    while (atomic_load(&probe->done) < variant->threads - 1)
        spin(&spins);
}

/* Seconds a pass, the best of some batches: at least two, because the first wakes the threads, unless the first is
 * hopeless beside `known` (0: no time known yet). */
static double
time_variant(struct limits_host *probe, unsigned index, double known)
{
    double best = 0, spent = 0;
    for (size_t passes = 1, batch = 0; batch < 2 || spent < least_spent; batch++) {
        const double begin = now_seconds();
        for (size_t i = 0; i < passes; i++)
            run_pass(probe, index);
        const double seconds = now_seconds() - begin;
        if (batch == 0 || seconds / (double)passes < best)
            best = seconds / (double)passes;
        spent += seconds;
        if (seconds < long_batch)
            passes *= 2;
        if (batch == 0 && known > 0 && seconds > 2 * known && seconds > long_pass)
            break;
    }
    return best;
}

static double
best_of_all(const struct limits_host *probe)
{
    double best = 0;
    for (int i = 0; i < probe->variant_count; i++) {
        const double seconds = probe->variants[i].best;
        if (seconds > 0 && (best == 0 || seconds < best))
            best = seconds;
    }
    return best;
}

static void
set_open(struct limits_host *probe, bool open)
{
    pthread_mutex_lock(&probe->mutex);
    probe->open = open;
    pthread_cond_broadcast(&probe->changed);
    pthread_mutex_unlock(&probe->mutex);
}

double
limits_host_round(struct limits_host *probe)
{
    const double before = best_of_all(probe);
    double best = 0;
    set_open(probe, true);
    for (int i = 0; i < probe->variant_count; i++) {
        struct variant *variant = &probe->variants[i];
        if (variant->best > hopeless * before && before > 0)
            continue;
        const double seconds = time_variant(probe, (unsigned)i, best > 0 ? best : before);
        if (variant->best == 0 || seconds < variant->best)
            variant->best = seconds;
        if (best == 0 || seconds < best)
            best = seconds;
    }
    set_open(probe, false);
    start_pass(probe, REST);
    return best;
}

static void
start_workers(struct limits_host *probe, int wanted)
{
    while (probe->workers < wanted && pthread_create(&probe->threads[probe->workers], NULL, worker_main, probe) == 0)
        probe->workers++;
}

struct limits_host *
limits_host_open(const void *a, const void *b, void *c, size_t n, int threads, struct status *status)
{
    struct limits_host *probe = calloc(1, sizeof *probe);
    if (probe)
        probe->threads = calloc(threads > 1 ? (size_t)threads : 1, sizeof *probe->threads);
    if (probe == NULL || probe->threads == NULL) {
        free(probe);
        status_set(status, STATUS_MEMORY, "no memory for a probe of %d threads", threads);
        return NULL;
    }
    pthread_mutex_init(&probe->mutex, NULL);
    pthread_cond_init(&probe->changed, NULL);
    probe->n = n;
    probe->a = a;
    probe->b = b;
    probe->c = c;
    start_workers(probe, threads - 1);
    add_variants(probe, probe->workers + 1); /* first: fewer threads are compared with these */
    for (int count = 1; count <= probe->workers; count *= 2)
        add_variants(probe, count);
    return probe;
}

void
limits_host_close(struct limits_host *probe)
{
    if (probe == NULL)
        return;
    pthread_mutex_lock(&probe->mutex);
    probe->closing = true;
    pthread_cond_broadcast(&probe->changed);
    pthread_mutex_unlock(&probe->mutex);
    for (int i = 0; i < probe->workers; i++)
        pthread_join(probe->threads[i], NULL);
    pthread_cond_destroy(&probe->changed);
    pthread_mutex_destroy(&probe->mutex);
    free(probe->threads);
    free(probe);
}
