/* The memory of sums: blocks apart, of the sizes and at the places that were promised, used again, bounded, counted,
 * given back; by several threads, in forked children, and where there is no memory. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/runtime.h"
#include "check.h"
#include "host/output_pool.h"
#include "process_memory.h"
#if VECADD_CUDA
#include "double.h"
#endif

#define KIB           ((size_t)1 << 10)
#define MIB           ((size_t)1 << 20)
#define LENGTH(array) (sizeof(array) / sizeof *(array))
#define MAPPED        (4 * MIB) /* blocks from here on are mappings of their own */

/* Sizes about the steps between capacities and about where mappings begin. */
static const size_t sizes[] = {1,           20 * KIB,       300 * KIB + 1,      MIB - 1,           MIB,
                               MIB + 1,     MIB + 64 * KIB, 3 * MIB + 7,        MAPPED - 64 * KIB, MAPPED - 1,
                               MAPPED,      MAPPED + 1,     MAPPED + 256 * KIB, 5 * MIB + 1,       16 * MIB - 1,
                               16 * MIB + 1};

static void
fill(void *block, size_t bytes, unsigned seed)
{
    unsigned char *at = block;
    for (size_t i = 0; i < bytes; i += i + 64 < bytes ? 61 : 1)
        at[i] = (unsigned char)(seed + i / 3);
}

static bool
is_filled(const void *block, size_t bytes, unsigned seed)
{
    const unsigned char *at = block;
    for (size_t i = 0; i < bytes; i += i + 64 < bytes ? 61 : 1)
        if (at[i] != (unsigned char)(seed + i / 3))
            return false;
    return true;
}

static bool
counts_are(size_t used_bytes, size_t used_blocks, size_t kept_bytes, size_t kept_blocks)
{
    const struct output_pool_counts counts = output_pool_counts();
    return counts.used_bytes == used_bytes && counts.used_blocks == used_blocks && counts.kept_bytes == kept_bytes &&
           counts.kept_blocks == kept_blocks;
}

/* The capacity of a block that was taken for that many bytes. */
static size_t
capacity_of(size_t bytes)
{
    const size_t before = output_pool_counts().used_bytes;
    void *block = output_pool_take(bytes);
    const size_t capacity = output_pool_counts().used_bytes - before;
    output_pool_give(block);
    return capacity;
}

static void
blocks_are_apart_on_cache_lines_and_mappings_on_huge_pages(void)
{
    unsigned char *block[LENGTH(sizes)][2];
    for (size_t i = 0; i < LENGTH(sizes); i++)
        for (unsigned j = 0; j < 2; j++) {
            block[i][j] = output_pool_take(sizes[i]);
            const uintptr_t at = (uintptr_t)block[i][j];
            CHECK(at && at % (sizes[i] < MAPPED ? 64 : 2 * MIB) == 0, "%zu bytes at %#" PRIxPTR, sizes[i], at);
            fill(block[i][j], sizes[i], (unsigned)i * 2 + j);
        }
    for (size_t i = 0; i < LENGTH(sizes); i++)
        for (unsigned j = 0; j < 2; j++) {
            CHECK(is_filled(block[i][j], sizes[i], (unsigned)i * 2 + j), "%zu bytes", sizes[i]);
            output_pool_give(block[i][j]);
        }
    CHECK(output_pool_counts().used_blocks == 0);
}

static void
mappings_ask_for_huge_pages(void)
{
    void *plain = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (plain == MAP_FAILED || madvise(plain, MAPPED, MADV_HUGEPAGE) < 0 || !mapping_has(plain, " hg"))
        return; /* this system does not say so, or has none */
    char *block = output_pool_take(16 * MIB);
    CHECK(mapping_has(block, " hg") && mapping_has(block + 16 * MIB - 1, " hg"));
    output_pool_give(block);
    munmap(plain, MAPPED);
}

/* A block that is a little too large for its sum serves the next that is a little larger. */
static void
capacities_are_a_sixteenth_of_their_power_of_two_apart(void)
{
    size_t largest = 0, distinct = 0;
    for (size_t bytes = MIB; bytes <= 32 * MIB; bytes += 32 * KIB + 1) {
        const size_t capacity = capacity_of(bytes);
        CHECK(capacity >= bytes && capacity - bytes < bytes / 8, "%zu bytes in %zu", bytes, capacity);
        CHECK(capacity >= largest);
        distinct += capacity > largest;
        largest = capacity;
        output_pool_empty();
    }
    CHECK(distinct > 5 * 8 && distinct <= 5 * 16 + 1, "%zu", distinct);
}

static void
a_block_that_was_given_back_is_taken_again(void)
{
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        void *other = output_pool_take(sizes[i]), *block = output_pool_take(sizes[i]);
        const size_t capacity = output_pool_counts().used_bytes / 2;
        output_pool_give(block);
        CHECK(counts_are(capacity, 1, capacity, 1));
        void *again = output_pool_take(sizes[i]);
        CHECK(again == block);
        CHECK(counts_are(2 * capacity, 2, 0, 0));
        output_pool_give(other);
        output_pool_give(again);
        CHECK(output_pool_take(sizes[i]) == again, "the newest first: it is likeliest to be in a cache");
        CHECK(output_pool_take(sizes[i]) == other);
        CHECK(counts_are(2 * capacity, 2, 0, 0));
        output_pool_give(again);
        output_pool_give(other);
        CHECK(output_pool_empty() == 2 * capacity);
        CHECK(counts_are(0, 0, 0, 0));
    }
}

static void
a_block_of_another_capacity_is_left(void)
{
    void *block = output_pool_take(2 * MIB);
    output_pool_give(block);
    void *larger = output_pool_take(2 * MIB + 1), *smaller = output_pool_take(MIB);
    CHECK(larger != block && smaller != block);
    CHECK(output_pool_counts().kept_bytes == 2 * MIB && output_pool_counts().kept_blocks == 1);
    output_pool_give(larger);
    output_pool_give(smaller);
    CHECK(output_pool_take(2 * MIB) == block, "from between others");
    CHECK(output_pool_take(2 * MIB + 1) == larger && output_pool_take(MIB) == smaller);
    output_pool_give(larger);
    output_pool_give(smaller);
    output_pool_give(block);
}

static void
no_more_is_kept_than_the_bound_and_the_oldest_go_first(void)
{
    setenv("VECADD_POOL_BYTES", "7340032", 1); /* 7 MiB */
    CHECK(output_pool_counts().bound == 7 * MIB);
    output_pool_give(NULL);
    CHECK(counts_are(0, 0, 0, 0));
    void *block[4];
    for (size_t i = 0; i < LENGTH(block); i++)
        block[i] = output_pool_take((i + 1) * MIB);
    for (size_t i = 0; i < 3; i++)
        output_pool_give(block[i]);
    CHECK(counts_are(4 * MIB, 1, 6 * MIB, 3));
    output_pool_give(block[3]);
    CHECK(counts_are(0, 0, 7 * MIB, 2), "as much as the bound is kept");
    CHECK(output_pool_take(3 * MIB) == block[2] && output_pool_take(4 * MIB) == block[3], "the newest");
    void *too_large = output_pool_take(16 * MIB);
    output_pool_give(block[2]);
    output_pool_give(too_large);
    CHECK(counts_are(4 * MIB, 1, 0, 0), "what is larger than the bound empties the pool, itself too");
}

static void
a_resized_block_has_its_content_as_far_as_it_fits(void)
{
    for (size_t i = 0; i < LENGTH(sizes); i++)
        for (size_t j = 0; j < LENGTH(sizes); j++) {
            const size_t from = sizes[i], to = sizes[j], common = from < to ? from : to;
            const size_t capacity = capacity_of(to);
            void *block = output_pool_take(from);
            fill(block, common, (unsigned)(i + j));
            void *moved = output_pool_resize(block, to);
            CHECK(is_filled(moved, common, (unsigned)(i + j)), "%zu to %zu bytes", from, to);
            fill(moved, to, (unsigned)i);
            CHECK((moved == block) == (capacity == capacity_of(from)), "%zu to %zu bytes", from, to);
            CHECK(output_pool_counts().used_bytes == capacity && output_pool_counts().used_blocks == 1);
            output_pool_give(moved);
        }
    CHECK(output_pool_counts().used_bytes == 0);
    output_pool_empty(); /* LeakSanitizer does not look for pointers in mappings, where the list goes through */
}

static void
zeros_are_zeros_in_fresh_memory_and_in_used(void)
{
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        unsigned char *dirty = malloc(sizes[i]), *block = NULL;
        memset(dirty, 0xa5, sizes[i]);
        free(dirty); /* the C library gives it to the pool, perhaps */
        block = output_pool_take_zeroed(sizes[i]);
        CHECK(all_zeros(block, sizes[i]), "fresh, %zu bytes", sizes[i]);
        memset(block, 0xa5, sizes[i]);
        output_pool_give(block);
        CHECK(output_pool_take_zeroed(sizes[i]) == block);
        CHECK(all_zeros(block, sizes[i]), "used, %zu bytes", sizes[i]);
        output_pool_give(block);
        output_pool_empty();
    }
}

static void
the_system_has_back_what_the_pool_gave_up(void)
{
    long before[2], after[2];
    void *block = output_pool_take(64 * MIB);
    memset(block, 1, 64 * MIB);
    output_pool_give(block);
    count_bytes(before);
    CHECK(output_pool_empty() == 64 * MIB);
    count_bytes(after);
    for (int i = 0; i < 2; i++)
        CHECK(before[i] - after[i] > (i ? 60 : 65) * (long)MIB, "%ld, %ld", before[i], after[i]);
}

static void
memory_that_is_not_there_is_null_and_empties_the_pool(void)
{
    static const size_t too_many[] = {(size_t)1 << 50, PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, SIZE_MAX};
    void *taken = output_pool_take(MIB);
    fill(taken, MIB, 7);
    for (size_t i = 0; i < LENGTH(too_many); i++) {
        CHECK(output_pool_take(too_many[i]) == NULL && output_pool_take_zeroed(too_many[i]) == NULL);
        CHECK(output_pool_resize(taken, too_many[i]) == NULL);
        CHECK(is_filled(taken, MIB, 7), "a block that could not grow is as it was");
        CHECK(counts_are(MIB, 1, 0, 0));
    }
    output_pool_give(taken);
    CHECK(counts_are(0, 0, MIB, 1));
    CHECK(output_pool_take(too_many[0]) == NULL && counts_are(0, 0, 0, 0));
}

#if VECADD_CUDA /* whose double decides which allocations find memory */

static void
what_the_pool_keeps_is_given_up_for_what_is_asked_for(void)
{
    setenv("VECADD_POOL_BYTES", "16777216", 1); /* too few for regions: malloc gives what has no mapping of its own */
    void *kept = output_pool_take(8 * MIB);
    output_pool_give(kept);
    double_fail_allocation(1);
    void *block = output_pool_take(MIB);
    CHECK(block != NULL && counts_are(MIB, 1, 0, 0));
    double_fail_allocation(1);
    CHECK(output_pool_take(MIB) == NULL, "there is nothing to give up");
    CHECK(counts_are(MIB, 1, 0, 0));
    output_pool_give(block);
}

#endif

enum { THREADS = 4, ROUNDS = 400, TAKEN = 3 };

/* Each thread has a few blocks, and finds in them what it wrote until it gives them back. */
static void *
take_and_give(void *argument)
{
    const unsigned thread = (unsigned)(uintptr_t)argument;
    unsigned char *taken[TAKEN] = {NULL};
    size_t bytes[TAKEN] = {0};
    unsigned random = thread * 7919 + 1;
    for (unsigned round = 0; round < ROUNDS; round++) {
        random = random * 1103515245 + 12345;
        const size_t i = round % TAKEN;
        CHECK(!taken[i] || (taken[i][0] == thread + i && taken[i][bytes[i] - 1] == thread + i));
        if (taken[i] && random >> 16 & 1) {
            const size_t wanted = sizes[(random >> 20) % LENGTH(sizes)];
            taken[i] = output_pool_resize(taken[i], wanted);
            CHECK(taken[i][0] == thread + i);
            bytes[i] = wanted;
        } else {
            output_pool_give(taken[i]);
            bytes[i] = sizes[(random >> 20) % LENGTH(sizes)];
            taken[i] = random >> 17 & 7 ? output_pool_take(bytes[i]) : output_pool_take_zeroed(1);
            bytes[i] = random >> 17 & 7 ? bytes[i] : 1;
        }
        taken[i][0] = taken[i][bytes[i] - 1] = (unsigned char)(thread + i);
        if (round % 100 == 99)
            output_pool_empty();
    }
    for (size_t i = 0; i < TAKEN; i++)
        output_pool_give(taken[i]);
    return NULL;
}

static void
threads_have_blocks_of_their_own(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, take_and_give, (void *)(i * 16)) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    const struct output_pool_counts counts = output_pool_counts();
    CHECK(counts.used_bytes == 0 && counts.used_blocks == 0);
    CHECK(output_pool_empty() == counts.kept_bytes);
    CHECK(counts_are(0, 0, 0, 0));
}

static int
status_of(pid_t child)
{
    int how = -1;
    return waitpid(child, &how, 0) == child ? how : -1;
}

static void
a_forked_child_has_what_the_pool_kept_and_what_was_used(void)
{
    runtime_start();
    void *used = output_pool_take(3 * MIB), *kept = output_pool_take(MIB);
    fill(used, 3 * MIB, 5);
    output_pool_give(kept);
    const pid_t child = fork();
    if (child == 0) {
        bool right = counts_are(3 * MIB, 1, MIB, 1) && is_filled(used, 3 * MIB, 5) && output_pool_take(MIB) == kept;
        memset(kept, 0, MIB);
        output_pool_give(used);
        right = right && output_pool_empty() == 3 * MIB;
        _exit(right ? 0 : 1);
    }
    CHECK(status_of(child) == 0);
    CHECK(counts_are(3 * MIB, 1, MIB, 1), "the parent's pool is as it was");
    CHECK(is_filled(used, 3 * MIB, 5));
    output_pool_give(used);
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) /* their own locks do not survive such a fork */

static atomic_bool forking_is_over;

static void *
keep_the_lock_busy(void *argument)
{
    (void)argument;
    while (!atomic_load(&forking_is_over)) {
        void *blocks[2] = {output_pool_take(MIB), output_pool_take(2 * MIB)};
        output_pool_give(blocks[0]);
        output_pool_give(blocks[1]);
    }
    return NULL;
}

/* Forked while another thread has the lock, perhaps in the middle of a change of the list. */
static void
a_child_forked_at_any_moment_can_take_and_give(void)
{
    runtime_start();
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, keep_the_lock_busy, NULL) == 0);
    for (int i = 0; i < 80; i++) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(20);
            void *block = output_pool_take(8 * MIB); /* mapped: the C library's lock is not the subject */
            output_pool_give(block);
            const bool right = output_pool_take(8 * MIB) == block && output_pool_empty() % MIB == 0;
            _exit(right && output_pool_counts().kept_blocks == 0 ? 0 : 1);
        }
        const int how = status_of(child);
        CHECK(how == 0, "child %d ended with %#x", i, (unsigned)how);
    }
    atomic_store(&forking_is_over, true);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

#endif

int
main(void)
{
    setenv("VECADD_POOL_BYTES", "1073741824", 1); /* more than any test keeps, on a small machine too */
    RUN(blocks_are_apart_on_cache_lines_and_mappings_on_huge_pages);
    RUN(mappings_ask_for_huge_pages);
    RUN(capacities_are_a_sixteenth_of_their_power_of_two_apart);
    RUN(a_block_that_was_given_back_is_taken_again);
    RUN(a_block_of_another_capacity_is_left);
    RUN(no_more_is_kept_than_the_bound_and_the_oldest_go_first);
    RUN(a_resized_block_has_its_content_as_far_as_it_fits);
    RUN(zeros_are_zeros_in_fresh_memory_and_in_used);
    RUN(the_system_has_back_what_the_pool_gave_up);
    RUN(memory_that_is_not_there_is_null_and_empties_the_pool);
#if VECADD_CUDA
    RUN(what_the_pool_keeps_is_given_up_for_what_is_asked_for);
#endif
    RUN(threads_have_blocks_of_their_own);
    RUN(a_forked_child_has_what_the_pool_kept_and_what_was_used);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    RUN(a_child_forked_at_any_moment_can_take_and_give);
#endif
    return check_report();
}
