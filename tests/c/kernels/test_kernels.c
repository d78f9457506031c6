/* The kernels, launched directly: every component, alignment, length and block size; values bit for bit, flags by
 * NumPy's rules, and no byte touched beside the operands. */
#include <cuda_runtime_api.h>
#include <fenv.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/fpenv.h"
#include "cuda/kernels.h"
#include "cuda/lab/launches.h"
#include "host/add.h"
#include "operands.h"
#include "sums.h"
#include "tests.h"

enum { ROOM = 1 << 20, VECTOR = 16 };

static void
add_on_device(enum component component, const void *a, const void *b, void *c, size_t n, unsigned *flags)
{
    const struct add_call call = {.component = component, .a = a, .b = b, .c = c, .n = n, .fp_flags = flags};
    CHECK(add_launch(&call) == cudaSuccess);
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
}

/* One addition of n components whose operands begin at these components past a 16-byte boundary. */
static void
check_placement(struct memory *m, enum component component, size_t at_a, size_t at_b, size_t at_c, size_t n)
{
    const size_t size = component_size[component], bytes = n * size;
    unsigned char *a = m->a + MARGIN + at_a * size, *b = m->b + MARGIN + at_b * size, *c = m->c + MARGIN + at_c * size;
    sums_fill(component, a, n, 1);
    sums_fill(component, b, n, 2);
    sums_expect(component, m->expected, n, 1, 2);
    memset(c - MARGIN, CANARY, MARGIN + bytes + MARGIN);

    fence(a, bytes);
    fence(b, bytes);
    add_on_device(component, a, b, c, n, NULL);
    unfence(a, bytes);
    unfence(b, bytes);
    CHECK(memcmp(c, m->expected, bytes) == 0, "component %d, offsets %zu %zu %zu, n %zu", component, at_a, at_b, at_c,
          n);
    CHECK(all_canaries(c - MARGIN, MARGIN) && all_canaries(c + bytes, MARGIN),
          "component %d, offsets %zu %zu %zu, n %zu", component, at_a, at_b, at_c, n);
}

TEST(every_alignment_and_length)
{
    struct memory m = memory_open(ROOM);
    for (enum component component = 0; component < COMPONENT_COUNT; component++) {
        const size_t vector = VECTOR / component_size[component], step = vector == 16 ? 5 : vector == 8 ? 3 : 1;
        const size_t lengths[] = {0,          1,          vector - 1,     vector,         vector + 1,
                                  2 * vector, 3 * vector, 3 * vector + 1, 4 * vector - 1, 70 * vector + 5};
        for (size_t a = 0; a < vector; a += step)
            for (size_t b = 0; b < vector; b += step)
                for (size_t c = 0; c < vector; c += step)
                    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
                        check_placement(&m, component, a, b, c, lengths[i]);
    }
    memory_close(&m);
}

/* 48 MB of operands: the other block size. */
TEST(large_operands)
{
    enum { N = (16 << 20) + 37 };
    struct memory m = memory_open(N + 2 * MARGIN);
    check_placement(&m, COMPONENT_I8, 0, 0, 0, N);
    check_placement(&m, COMPONENT_I8, 3, 0, 1, N - 3);
    memory_close(&m);
}

/* The blocks of a sum of n components whose operands begin at that many past a 16-byte boundary, a elsewhere. */
static unsigned
blocks_of(enum component component, size_t at_a, size_t at, size_t n)
{
    char *const memory = (char *)VECTOR + at * component_size[component];
    struct kernel_launch launch = {0};
    const struct add_call call = {.component = component,
                                  .a = (char *)VECTOR + at_a * component_size[component],
                                  .b = memory,
                                  .c = memory,
                                  .n = n,
                                  .describe = &launch};
    CHECK(add_launch(&call) == cudaSuccess && launch.launches == 1 && launch.block[0] == 256);
    return launch.grid[0];
}

/* Checks sums of `vectors` whole vectors, at three alignments and with three tails, by `each` vectors a thread. */
static void
check_vectors(struct memory *m, enum component component, size_t vectors, unsigned each)
{
    const size_t vector = VECTOR / component_size[component];
    for (size_t at = 0; at < vector; at = at ? at + (vector > 2 ? vector - 2 : 1) : 1)
        for (size_t tail = 0; tail < vector; tail = tail ? tail + (vector > 2 ? vector - 2 : 1) : 1) {
            const size_t head = (vector - at) % vector, n = head + vectors * vector + tail;
            const size_t threads = vectors + head + tail;
            CHECK(blocks_of(component, at, at, n) == (threads + 256 * each - 1) / (256 * each), "%zu vectors", vectors);
            check_placement(m, component, at, at, at, n);
        }
}

/* From 4 MiB to 8 MiB an operand: the last block is whole, has one thread too many or too few, one vector or none in
 * its second half. */
TEST(two_vectors_a_thread)
{
    enum { PAIRS = 1 << 18, MOST = 1 << 19 };
    struct memory m = memory_open(VECTOR * (MOST + 16));
    for (enum component component = 0; component < COMPONENT_COUNT; component++) {
        check_vectors(&m, component, PAIRS - 1, 1);
        check_vectors(&m, component, PAIRS, 2);
    }
    static const size_t beyond[] = {1, 255, 256, 257, 511, 513};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++)
        check_vectors(&m, COMPONENT_F32, PAIRS + beyond[i], 2);
    check_vectors(&m, COMPONENT_F64, MOST, 2);
    check_vectors(&m, COMPONENT_F64, MOST + 1, 1);
    CHECK(blocks_of(COMPONENT_I16, 1, 0, 8 * PAIRS + 800) > PAIRS / 256, "shifted vectors, which other kernels add");
    check_placement(&m, COMPONENT_I16, 1, 0, 0, 8 * PAIRS + 800);
    memory_close(&m);
}

/* ... into an operand of its own, and with numbers that differ from vector to vector. */
TEST(two_vectors_a_thread_in_place)
{
    enum { N = (1 << 20) + 1037 };
    struct memory m = memory_open(sizeof(int32_t) * N);
    sums_expect(COMPONENT_I32, m.expected, N, 1, 2);
    sums_fill(COMPONENT_I32, m.a, N, 1);
    sums_fill(COMPONENT_I32, m.b, N, 2);
    add_on_device(COMPONENT_I32, m.a, m.b, m.b, N, NULL);
    CHECK(memcmp(m.b, m.expected, N * sizeof(int32_t)) == 0);
    memory_close(&m);
}

TEST(the_sum_may_replace_an_operand)
{
    enum { N = 1000 };
    struct memory m = memory_open(ROOM);
    for (enum component component = 0; component < COMPONENT_COUNT; component++) {
        const size_t size = component_size[component];
        sums_expect(component, m.expected, N, 1, 2);
        for (int offset = 0; offset < 2; offset++) {
            unsigned char *a = m.a + size, *b = m.b + (size_t)offset * size;
            sums_fill(component, a, N, 1);
            sums_fill(component, b, N, 2);
            add_on_device(component, a, b, a, N, NULL);
            CHECK(memcmp(a, m.expected, N * size) == 0, "component %d", component);
            sums_fill(component, a, N, 1);
            add_on_device(component, a, b, b, N, NULL);
            CHECK(memcmp(b, m.expected, N * size) == 0, "component %d", component);
        }
        sums_fill(component, m.a, N, 1);
        sums_expect(component, m.expected, N, 1, 1);
        add_on_device(component, m.a, m.a, m.a, N, NULL);
        CHECK(memcmp(m.a, m.expected, N * size) == 0, "component %d", component);
    }
    memory_close(&m);
}

static const struct host_simd *
plain_c(void)
{
    const struct host_simd *const *level = host_simd_levels;
    while (level[1])
        level++;
    return *level;
}

static bool
same_or_both_nan(enum component component, uint16_t x, uint16_t y)
{
    if (component == COMPONENT_E4M3FN) /* NaNs' signs are ours to say */
        return x == y;
    const uint16_t infinity = component == COMPONENT_F16 ? 0x7c00 : component == COMPONENT_BF16 ? 0x7f80 : 0xffff;
    return x == y || ((x & 0x7fff) > infinity && (y & 0x7fff) > infinity);
}

/* All 65536 patterns of a 16-bit unit against patterns from everywhere, as the host adds them. */
static void
check_patterns(enum component component)
{
    enum { PATTERNS = 1 << 16 };
    struct memory m = memory_open(ROOM);
    uint16_t *a = (uint16_t *)m.a, *b = (uint16_t *)m.b, *c = (uint16_t *)m.c, *expected = (uint16_t *)m.expected;
    const size_t n = PATTERNS * sizeof(uint16_t) / component_size[component];
    for (unsigned salt = 0; salt < 40; salt++) {
        for (unsigned i = 0; i < PATTERNS; i++) {
            a[i] = (uint16_t)i;
            b[i] = (uint16_t)(salt < 8 ? i ^ (1u << (salt + 8)) : i * 40503u * salt + salt);
        }
        plain_c()->add[component](a, b, expected, n);
        add_on_device(component, a, b, c, n, NULL);
        long wrong = 0;
        for (unsigned i = 0; i < PATTERNS; i++)
            wrong += !same_or_both_nan(component, c[i], expected[i]);
        CHECK(wrong == 0, "component %d, salt %u: %ld of %d", component, salt, wrong, PATTERNS);
    }
    memory_close(&m);
}

TEST(integers_wrap_and_16_bit_floats_round_as_on_the_host)
{
    check_patterns(COMPONENT_I8);
    check_patterns(COMPONENT_I16);
    check_patterns(COMPONENT_I32);
    check_patterns(COMPONENT_I64);
    check_patterns(COMPONENT_E4M3FN);
    check_patterns(COMPONENT_F16);
    check_patterns(COMPONENT_BF16);
}

TEST(any_byte_but_zero_is_true)
{
    struct memory m = memory_open(ROOM);
    for (unsigned i = 0; i < 1 << 16; i++) {
        m.a[i] = (unsigned char)i;
        m.b[i] = (unsigned char)(i >> 8);
    }
    add_on_device(COMPONENT_BOOL, m.a, m.b, m.c, 1 << 16, NULL);
    long wrong = 0;
    for (unsigned i = 0; i < 1 << 16; i++)
        wrong += m.c[i] != (m.a[i] || m.b[i]);
    CHECK(wrong == 0, "%ld", wrong);
    memory_close(&m);
}

/* Where a sum can go wrong: zeros, ones, the subnormals' ends, the largest, infinity, quiet and signalling NaNs. */
static const struct {
    enum component component;
    uint64_t patterns[12];
} special[] = {
    {COMPONENT_F16, {0, 0x3c00, 1, 0x3ff, 0x400, 0x7bff, 0x5000, 0x4c00, 0x4bff, 0x7c00, 0x7e01, 0x7c01}},
    {COMPONENT_BF16, {0, 0x3f80, 1, 0x7f, 0x80, 0x7f7f, 0x7c00, 0x7b00, 0x7aff, 0x7f80, 0x7fc1, 0x7f81}},
    {COMPONENT_F32,
     {0, 0x3f800000, 1, 0x7fffff, 0x800000, 0x7f7fffff, 0x7f000000, 0x73000000, 0x72ffffff, 0x7f800000, 0x7fc00001,
      0x7f800001}},
    {COMPONENT_F64,
     {0, 0x3ff0000000000000, 1, 0xfffffffffffff, 0x10000000000000, 0x7fefffffffffffff, 0x7fe0000000000000,
      0x7c90000000000000, 0x7c8fffffffffffff, 0x7ff0000000000000, 0x7ff8000000000001, 0x7ff0000000000001}},
};

static void
put(void *target, size_t size, uint64_t pattern, int negative)
{
    const uint64_t bits = pattern | (uint64_t)negative << (8 * size - 1);
    memcpy(target, &bits, size);
}

static unsigned
host_flags(enum component component, const void *a, const void *b, void *c, size_t n)
{
    const fpenv_word callers = fpenv_get();
    fpenv_set(fpenv_without_flags(callers));
    plain_c()->add[component](a, b, c, n);
    const unsigned flags = fpenv_flags(fpenv_get());
    fpenv_set(callers);
    return flags;
}

/* Each pair of special values at a place of a vector and at one outside of them. */
TEST(flags_are_the_hosts)
{
    enum { N = 37, PLACES = 2, VALUES = 24 };
    static const size_t places[PLACES] = {11, 36};
    struct memory m = memory_open(ROOM);
    for (size_t row = 0; row < sizeof special / sizeof *special; row++)
        for (int i = 0; i < VALUES; i++)
            for (int j = 0; j < VALUES; j++)
                for (int place = 0; place < PLACES; place++) {
                    const enum component component = special[row].component;
                    const size_t size = component_size[component];
                    memset(m.a, 0, N * size);
                    memset(m.b, 0, N * size);
                    put(m.a + places[place] * size, size, special[row].patterns[i / 2], i % 2);
                    put(m.b + places[place] * size, size, special[row].patterns[j / 2], j % 2);
                    *m.flags = 0;
                    add_on_device(component, m.a, m.b, m.c, N, m.flags);
                    const unsigned expected = host_flags(component, m.a, m.b, m.expected, N);
                    CHECK(*m.flags == expected, "component %d, %#lx + %#lx at %zu: %u, host %u", component,
                          (unsigned long)special[row].patterns[i / 2], (unsigned long)special[row].patterns[j / 2],
                          places[place], *m.flags, expected);
                }
    memory_close(&m);
}

TEST(flags_are_added_to_the_words_value)
{
    struct memory m = memory_open(ROOM);
    float *a = (float *)m.a;
    a[0] = 0x1.fffffep127f;
    *m.flags = FP_INVALID;
    add_on_device(COMPONENT_F32, a, a, m.c, 1, m.flags);
    CHECK(*m.flags == (FP_INVALID | FP_OVERFLOW));
    memory_close(&m);
}

/* The host's rounding mode and flags are neither used nor changed. */
TEST(the_hosts_floating_point_environment_is_its_own)
{
    struct memory m = memory_open(ROOM);
    float *a = (float *)m.a, *b = (float *)m.b, *c = (float *)m.c;
    a[0] = 1, b[0] = 0x1p-24f;
    a[1] = b[1] = 0x1.fffffep127f;
    fesetround(FE_UPWARD);
    feclearexcept(FE_ALL_EXCEPT);
    add_on_device(COMPONENT_F32, a, b, c, 2, NULL);
    CHECK(fegetround() == FE_UPWARD);
    CHECK(!fetestexcept(FE_OVERFLOW));
    fesetround(FE_TONEAREST);
    CHECK(c[0] == 1, "%a", (double)c[0]);
    memory_close(&m);
}

/* As the operands of a transfer without copies are: no kernel that raises flags adds vectors in which a, b and c begin
 * at different places. */
TEST(operands_of_different_phases_are_added_by_components_where_flags_are_raised)
{
    struct kernel_launch launch = {0};
    unsigned flags;
    const struct add_call call = {.component = COMPONENT_F32,
                                  .a = (void *)4096,
                                  .b = (void *)4096,
                                  .c = (void *)4100,
                                  .n = 25600,
                                  .fp_flags = &flags,
                                  .describe = &launch};
    CHECK(add_launch(&call) == cudaSuccess && launch.grid[0] == 100 && launch.block[0] == 256, "%u", launch.grid[0]);
}

TEST(a_block_that_is_not_whole_warps_is_refused)
{
    static const unsigned blocks[] = {1, 16, 48, 100, 1008};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        const struct add_call call = {.component = COMPONENT_I8, .n = 1000, .block = blocks[i]};
        CHECK(add_launch(&call) == cudaErrorInvalidConfiguration, "%u", blocks[i]);
    }
}

TEST(a_grid_too_large_is_refused)
{
    struct kernel_launch launch = {0};
    struct add_call call = {.component = COMPONENT_I8, .n = SIZE_MAX / 4};
    CHECK(add_launch(&call) == cudaErrorInvalidConfiguration);
    call.describe = &launch; /* which queues nothing; 256 threads a block add 16 bytes each */
    call.n = (size_t)INT32_MAX * 256 * 16;
    CHECK(add_launch(&call) == cudaSuccess && launch.grid[0] == INT32_MAX, "%u", launch.grid[0]);
    call.n++;
    CHECK(add_launch(&call) == cudaErrorInvalidConfiguration);
}

TEST(probes_read_and_write_all_of_the_memory)
{
    struct memory m = memory_open(ROOM);
    const size_t bytes = 100 * VECTOR;
    memset(m.a, CANARY, ROOM);
    CHECK(limits_write_launch(m.a, bytes, 0, NULL) == cudaSuccess);
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
    CHECK(all_canaries(m.a + bytes, ROOM - bytes));

    *m.flags = 0;
    CHECK(limits_read_launch(m.a, bytes, m.flags, NULL) == cudaSuccess);
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
    CHECK(*m.flags == 0);
    for (size_t i = 0; i < bytes; i++) {
        m.a[i] = 1;
        *m.flags = 0;
        CHECK(limits_read_launch(m.a, bytes, m.flags, NULL) == cudaSuccess);
        CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
        CHECK(*m.flags != 0, "byte %zu", i);
        m.a[i] = 0;
    }
    memory_close(&m);
}

/* As above, and the sums of a kernel that reads again and again are those of one that reads once. */
TEST(probes_of_the_l2_read_and_write_all_of_the_memory)
{
    struct memory m = memory_open(ROOM);
    const size_t bytes = 100 * VECTOR;
    memset(m.a, CANARY, ROOM);
    CHECK(limits_write_again_launch(m.a, bytes, 3, NULL) == cudaSuccess);
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
    CHECK(all_canaries(m.a + bytes, ROOM - bytes));
    for (size_t i = 0; i < bytes + 1; i++) { /* the last one is past the end */
        *m.flags = 0;
        m.a[i] = 1;
        CHECK(limits_read_again_launch(m.a, bytes, 2, m.flags, NULL) == cudaSuccess);
        CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
        CHECK((*m.flags != 0) == (i < bytes), "byte %zu", i);
        m.a[i] = 0;
    }
    memory_close(&m);
}

TEST(the_copying_probe_copies_the_first_half)
{
    struct memory m = memory_open(ROOM);
    const size_t bytes = 200 * VECTOR;
    memset(m.a, CANARY, ROOM);
    for (size_t i = 0; i < bytes / 2; i++)
        m.a[i] = (unsigned char)(7 * i);
    CHECK(limits_copy_launch(m.a, bytes, NULL) == cudaSuccess);
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
    CHECK(memcmp(m.a, m.a + bytes / 2, bytes / 2) == 0);
    CHECK(all_canaries(m.a + bytes, ROOM - bytes));
    memory_close(&m);
}

TEST(a_chain_leads_through_every_link)
{
    enum { LINKS = 7, DISTANCE = 48 };
    struct memory m = memory_open(ROOM);
    CHECK(limits_chain_launch(m.a, LINKS, DISTANCE, NULL) == cudaSuccess);
    for (unsigned steps = 0; steps < 2 * LINKS; steps++)
        for (int past_l1 = 0; past_l1 < 2; past_l1++) {
            void **sink = (void **)m.b;
            CHECK(limits_chase_launch(m.a, steps, past_l1, sink, NULL) == cudaSuccess);
            CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
            CHECK(*sink == m.a + steps % LINKS * DISTANCE, "%u steps", steps);
        }
    memory_close(&m);
}
