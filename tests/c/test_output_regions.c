/* Blocks that are cut from huge pages: their addresses, and what the system gets back when some or all of them go. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"
#include "host/output_pool.h"
#include "host/schedule.h"
#include "host/threads.h"
#include "process_memory.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

enum { BLOCKS = 640, BYTES = 96 << 10 }; /* two regions */

static unsigned char *block[BLOCKS];

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static uintptr_t
region_of(const void *address)
{
    return (uintptr_t)address / HUGE_PAGE * HUGE_PAGE;
}

static bool next_is_aligned;

/* The system's, but the next mapping begins on a huge page, after a guard page. */
void *
mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset)
{
    if (next_is_aligned) {
        next_is_aligned = false;
        char *room = mmap(NULL, bytes + 2 * HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        address = (void *)region_of(room + 2 * HUGE_PAGE - 1);
        flags |= MAP_FIXED;
    }
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}

static void
take_all(void)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = output_pool_take(BYTES);
        memset(block[i], (int)(i % 251 + 1), BYTES);
    }
}

static bool
is_whole(size_t i)
{
    return block[i][0] == i % 251 + 1 && memcmp(block[i], block[i] + 1, BYTES - 1) == 0;
}

static void
blocks_follow_each_other_on_cache_lines(void)
{
    take_all();
    size_t apart = 0;
    for (size_t i = 0; i < BLOCKS; i++) {
        CHECK((uintptr_t)block[i] % 64 == 0 && is_whole(i), "%zu", i);
        apart += i > 0 && block[i] - block[i - 1] != BYTES + 64;
    }
    CHECK(apart == 1, "only where a new region begins");
    for (size_t i = 0; i < BLOCKS; i++)
        output_pool_give(block[i]);
    CHECK(output_pool_empty() == (size_t)BLOCKS * BYTES);
}

static void
the_system_has_the_pages_of_blocks_that_go_and_no_others(void)
{
    long before[2], after[2];
    take_all();
    count_bytes(before);
    for (size_t i = 0; i < BLOCKS; i++)
        if (i % 16)
            output_pool_give(block[i]);
    CHECK(output_pool_empty() == (size_t)BLOCKS * 15 / 16 * BYTES);
    count_bytes(after);
    CHECK(before[1] - after[1] > (long)BLOCKS * BYTES / 16 * 14, "%ld of %ld", before[1] - after[1], before[1]);
    CHECK(before[0] == after[0], "the regions stay");
    for (size_t i = 0; i < BLOCKS; i += 16)
        CHECK(is_whole(i), "%zu", i);
    for (size_t i = 0; i < BLOCKS; i += 16)
        output_pool_give(block[i]);
    output_pool_empty();
    count_bytes(after);
    CHECK(before[0] - after[0] == 2 * HUGE_REGION, "%ld", before[0] - after[0]);
}

/* The system's own thread would make a huge page of the few small ones that are left of one, zeros and all. */
static void
pages_that_went_do_not_come_back_as_a_huge_page(void)
{
    take_all();
    CHECK(mapping_has(block[1], " hg"));
    for (size_t i = 0; i < BLOCKS; i++)
        if (i % 64)
            output_pool_give(block[i]);
    output_pool_empty();
    for (size_t i = 0; i < BLOCKS; i += 64) {
        CHECK(mapping_has(block[i], " nh") && !mapping_has(block[i], " hg"), "%zu", i);
        output_pool_give(block[i]);
    }
    output_pool_empty();
}

static void
no_block_is_cut_from_a_region_that_goes(void)
{
    void *first = output_pool_take(BYTES);
    output_pool_give(first);
    output_pool_empty();
    unsigned char *next = output_pool_take_zeroed(BYTES);
    CHECK(all_zeros(next, BYTES));
    memset(next, 1, BYTES);
    output_pool_give(next);
    CHECK(output_pool_empty() == BYTES);
}

static void
zeros_are_zeros_in_pages_that_others_left(void)
{
    take_all();
    for (size_t i = 0; i < BLOCKS; i += 2)
        output_pool_give(block[i]);
    for (size_t i = 0; i < BLOCKS; i += 2) {
        block[i] = output_pool_take_zeroed(BYTES);
        CHECK(all_zeros(block[i], BYTES), "%zu", i);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        output_pool_give(block[i]);
    output_pool_empty();
}

/* How many huge pages of a region have their first bytes in memory. */
static size_t
pages_there(uintptr_t region)
{
    size_t count = 0;
    for (size_t at = 0; at < HUGE_REGION; at += HUGE_PAGE) {
        unsigned char there = 0;
        CHECK(mincore((void *)(region + at), 1, &there) == 0);
        count += there & 1;
    }
    return count;
}

/* Whether the system faults in what it is asked for: Linux 5.14 and later. */
static bool
system_backs_pages(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool does = madvise(page, 4096, MADV_POPULATE_WRITE) == 0;
    munmap(page, 4096);
    return does;
}

/* Pages that no block has come to, at most, while a region is cut up into blocks of `bytes` bytes. */
static size_t
pages_ahead(size_t bytes)
{
    const size_t count = HUGE_REGION / bytes - HUGE_REGION / bytes / 16;
    uintptr_t region = 0;
    size_t most = 0;
    for (size_t i = 0; i < count; i++) {
        block[i] = output_pool_take(bytes);
        block[i][bytes - 1] = 1;
        region = i > 0 ? region : region_of(block[i]);
        const size_t cut = ((uintptr_t)block[i] + bytes - region + HUGE_PAGE - 1) / HUGE_PAGE;
        const size_t there = pages_there(region);
        CHECK(there >= cut && there <= 2 * cut, "%zu of %zu pages", there, cut);
        most = there - cut > most ? there - cut : most;
    }
    for (size_t i = 0; i < count; i++)
        output_pool_give(block[i]);
    output_pool_empty();
    return most;
}

/* A worker that comes late leaves its page to a thread that writes there: of many regions one has them all. */
static void
several_threads_fault_in_pages_that_blocks_are_about_to_have(void)
{
    const int before = threads_choose(4);
    size_t most = 0;
    for (int i = 0; i < 200 && most < 3; i++) {
        const size_t ahead = pages_ahead(MIB);
        CHECK(ahead <= 3, "%zu pages ahead of 4 threads", ahead);
        most = ahead > most ? ahead : most;
    }
    CHECK(most > 0, "no page was ever there before its block");
    threads_choose(before);
}

static void
small_blocks_are_written_on_pages_that_their_own_thread_faults_in(void)
{
    const int before = threads_choose(4);
    for (int i = 0; i < 20; i++)
        CHECK(pages_ahead(128 << 10) == 0, "a page is there before its block");
    threads_choose(before);
}

static void
back_four_pages(void *context, size_t begin, size_t end, int worker)
{
    (void)end, (void)worker;
    if (begin == 0)
        prefault_huge_pages((struct huge_pages){(char *)context + 4 * HUGE_PAGE, 4});
}

static void
a_caller_whose_workers_are_busy_faults_in_one_page(void)
{
    struct huge_region *region = huge_region_map();
    const size_t before = pages_there((uintptr_t)region);
    threads_run_all(2, 2, 1, back_four_pages, region);
    const size_t more = pages_there((uintptr_t)region) - before;
    CHECK(more == 1, "%zu more pages", more);
    huge_region_unmap(region);
}

static void
one_page_is_left_to_the_thread_that_writes_there(void)
{
    struct huge_region *region = huge_region_map();
    CHECK(huge_region_allocate(region, 64, MIB, 64) != NULL);
    CHECK(huge_region_pages_to_prefault(region, 4).count == 0, "it is there");
    CHECK(huge_region_allocate(region, 64, MIB, 64) != NULL);
    CHECK(huge_region_pages_to_prefault(region, 4).count == 0, "as much ahead as there is: one");
    CHECK(huge_region_allocate(region, 64, 3 * MIB, 64) != NULL);
    CHECK(huge_region_pages_to_prefault(region, 1).count == 0, "one thread, for two pages too");
    huge_region_unmap(region);
}

static void
a_region_has_room_for_so_much_and_no_more(void)
{
    struct huge_region *region = huge_region_map();
    CHECK(region_of(region) == (uintptr_t)region);
    size_t blocks = 0;
    char *last = NULL, *next;
    while ((next = huge_region_allocate(region, 64, MIB, 64)) != NULL) {
        next[-64] = next[MIB - 1] = 1;
        last = next;
        blocks++;
    }
    CHECK(blocks == HUGE_REGION / MIB - 1 && region->blocks == blocks);
    CHECK(last + MIB <= (char *)region + HUGE_REGION);
    CHECK(huge_region_allocate(region, 64, SIZE_MAX, 64) == NULL);
    CHECK(huge_region_allocate(region, 64, KIB, 64) != NULL, "where a smaller one fits, it is cut");
    huge_region_unmap(region);
}

static void
no_block_reaches_beyond_its_region(void)
{
    struct huge_region *region = huge_region_map();
    CHECK(huge_region_allocate(region, 64, MIB + 1, 64) != NULL);
    const size_t cut = region->cut, begin = (cut + 64 + 63) / 64 * 64;
    for (size_t bytes = HUGE_REGION - cut - 256; bytes <= HUGE_REGION - cut; bytes++) {
        const char *block = huge_region_allocate(region, 64, bytes, 64);
        CHECK(block == (bytes <= HUGE_REGION - begin ? (char *)region + begin : NULL), "%zu", bytes);
        region->cut = cut;
    }
    huge_region_unmap(region);
}

static void
a_mapping_that_begins_on_a_huge_page_has_room_for_the_blocks_head(void)
{
    next_is_aligned = true;
    char *block = output_pool_take(8 * MIB);
    CHECK(!next_is_aligned && (uintptr_t)block % HUGE_PAGE == 0);
    memset(block, 1, 8 * MIB);
    output_pool_give(block);
    CHECK(output_pool_empty() == 8 * MIB);
}

static void
a_small_bound_or_a_system_without_huge_pages_cuts_none(void)
{
    setenv("VECADD_POOL_BYTES", "33554431", 1);
    size_t used;
    CHECK(!output_pool_cuts(&used) && used == 0);
    void *small = output_pool_take(MIB);
    CHECK(region_of(small) + 128 != (uintptr_t)small);
    output_pool_give(small);
    output_pool_empty();
}

int
main(void)
{
    setenv("VECADD_POOL_BYTES", "1073741824", 1); /* more than any test keeps, on a small machine too */
    RUN(a_region_has_room_for_so_much_and_no_more);
    RUN(no_block_reaches_beyond_its_region);
    RUN(a_small_bound_or_a_system_without_huge_pages_cuts_none);
    RUN(one_page_is_left_to_the_thread_that_writes_there);
    RUN(a_mapping_that_begins_on_a_huge_page_has_room_for_the_blocks_head);
    if (system_backs_pages())
        RUN(a_caller_whose_workers_are_busy_faults_in_one_page);
    if (huge_pages_are_there()) {
        if (system_backs_pages())
            RUN(several_threads_fault_in_pages_that_blocks_are_about_to_have);
        RUN(small_blocks_are_written_on_pages_that_their_own_thread_faults_in);
        RUN(blocks_follow_each_other_on_cache_lines);
        RUN(the_system_has_the_pages_of_blocks_that_go_and_no_others);
        RUN(pages_that_went_do_not_come_back_as_a_huge_page);
        RUN(no_block_is_cut_from_a_region_that_goes);
        RUN(zeros_are_zeros_in_pages_that_others_left);
    }
    return check_report();
}
