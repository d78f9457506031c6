#include "host/output_pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/machine.h"
#include "base/runtime.h"
#include "base/util.h"
#include "host/schedule.h"
#include "host/threads.h"

/* --- Mappings of huge pages. */

enum { PAGE = 4096, AHEAD_MAX = 8 /* huge pages */ };

#define THP "/sys/kernel/mm/transparent_hugepage/"

/* Reads a file's first line. */
static bool
read_line(const char *path, char line[64])
{
    FILE *file = fopen(path, "re");
    const bool found = file && fgets(line, 64, file);
    if (file)
        fclose(file);
    return found;
}

bool
huge_pages_are_there(void)
{
    char line[64];
    if (prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) > 0 || !read_line(THP "enabled", line) || strstr(line, "[never]"))
        return false;
    size_t bytes;
    return read_line(THP "hpage_pmd_size", line) && sscanf(line, "%zu", &bytes) == 1 && bytes == HUGE_PAGE;
}

struct huge_region *
huge_region_map(void)
{
    const size_t mapped = HUGE_REGION + HUGE_PAGE - PAGE;
    char *mapping = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
        return NULL;
    const size_t before = -(uintptr_t)mapping % HUGE_PAGE, after = mapped - before - HUGE_REGION;
    if (before)
        munmap(mapping, before);
    if (after)
        munmap(mapping + before + HUGE_REGION, after);
    struct huge_region *region = (void *)(mapping + before);
    madvise(region, HUGE_REGION, MADV_HUGEPAGE);
    *region = (struct huge_region){.cut = sizeof *region, .backed = HUGE_PAGE};
    return region;
}

void
huge_region_unmap(struct huge_region *region)
{
    munmap(region, HUGE_REGION);
}

void *
huge_region_allocate(struct huge_region *region, size_t before, size_t bytes, size_t alignment)
{
    const size_t begin = (region->cut + before + alignment - 1) / alignment * alignment;
    if (begin > HUGE_REGION || bytes > HUGE_REGION - begin)
        return NULL;
    region->cut = begin + bytes;
    region->blocks++;
    return (char *)region + begin;
}

struct huge_pages
huge_region_pages_to_prefault(struct huge_region *region, int threads)
{
    if (region->cut <= region->backed)
        return (struct huge_pages){0};
    const size_t needed = (region->cut + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE, from = region->backed;
    const size_t ahead = smaller(from, smaller((size_t)threads, AHEAD_MAX) * HUGE_PAGE);
    region->backed = smaller(larger(needed, from + ahead), HUGE_REGION);
    const size_t count = (region->backed - from) / HUGE_PAGE;
    return (struct huge_pages){(char *)region + from, count > 1 && threads > 1 ? count : 0};
}

/* Gives the pages within these bytes of a block back to the system. No other block is cut from there. Asks for no
 * huge pages up to there any more: the system would make one of the few pages that are left, and 50 kept sums of 256
 * KiB would take 100 MiB. Any thread may call it while the block is counted. */
static void
huge_region_discard(struct huge_region *region, void *from, size_t bytes)
{
    const uintptr_t begin = ((uintptr_t)from + PAGE - 1) / PAGE * PAGE, end = ((uintptr_t)from + bytes) / PAGE * PAGE;
    if (begin >= end)
        return;
    /* From the region's begin, and so at most two ranges of a region differ for the system. */
    madvise(region, (end + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE - (uintptr_t)region, MADV_NOHUGEPAGE);
    madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* --- Pages that several threads fault in. */

#ifndef MADV_POPULATE_WRITE /* C libraries older than Linux 5.14 do not name it */
#define MADV_POPULATE_WRITE 23
#endif

struct backing {
    struct huge_pages pages;
    bool caller_has_one;
};

static void
back_page(void *context, size_t begin, size_t end, int worker)
{
    struct backing *backing = context;
    for (; begin < end && !(worker == 0 && backing->caller_has_one); begin++) {
        madvise(backing->pages.first + begin * HUGE_PAGE, HUGE_PAGE, MADV_POPULATE_WRITE);
        if (worker == 0)
            backing->caller_has_one = true;
    }
}

void
prefault_huge_pages(struct huge_pages pages)
{
    struct backing backing = {pages, false};
    if (pages.count > 0)
        threads_run_all((int)smaller((size_t)threads_available(), pages.count), pages.count, 1, back_page, &backing);
}

/* --- The pool. */

enum {
    GRANULE = 1 << 10,
    STEPS = 16, /* block sizes per doubling: a sum up to a sixteenth larger than the last one finds that one's block */
    USUAL_SHARE = 8, /* the default bound is the memory divided by this */
    CACHE_LINE = 64,

    /* Smaller blocks have no mapping of their own: huge pages do not make up for it. On two cores of Cascade Lake sums
     * that the caller keeps take, of NumPy's time, 0.73 on heap blocks and 1.5 on mappings at 1 MiB, 0.83 and 0.92 at
     * 2 MiB, 0.64 and 0.53 at 4 MiB. */
    MAPPED_MIN = 4 << 20,

    /* Where the pool may keep less, sums are not cut: each that is dropped would break up a huge page. */
    CUTTING_BOUND = HUGE_REGION,

    /* From here on other threads clear pages of a region ahead of its blocks. Smaller sums are added by one
     * thread, which writes sooner to pages in its own cache: on sixteen Xeon processors kept sums of 16 KiB took 7.7 us
     * on pages that others had cleared and 3.8 on its own, of 64 KiB 18 and 13, of 256 KiB 34 and 64. */
    CLEARED_TOGETHER_MIN = 256 << 10,

    BUCKETS = 128, /* of kept blocks, by a hash of their capacity */
};

#define UNUSED_NS (OUTPUT_POOL_SECONDS * 1000000000LL)

/* A block's header, on the cache line before the caller's bytes. */
struct block {
    void *memory;  /* what it is part of */
    size_t mapped; /* bytes; 0: memory is from malloc; CUT: it is a struct huge_region */
    size_t capacity;
    struct block *newer, *older;               /* in the list of kept blocks */
    struct block *bucket_newer, *bucket_older; /* in that of its bucket */
    union {
        long long since; /* when it was given back: now_ns() */
        bool alone;      /* on its way out of a region: other blocks stay there */
    };
};

#define CUT SIZE_MAX

static struct pool {
    pthread_mutex_t lock;
    struct block *newest, *oldest;
    struct block *bucket[BUCKETS]; /* each one's newest */
    struct huge_region *region;    /* that blocks are cut from */
    size_t usual;                  /* the bound where the address space has no limit */
    bool wished, has_huge, cuts;   /* wished: VECADD_POOL_BYTES says `usual` */
    size_t small_used;             /* bytes of counts.used_bytes */
    struct output_pool_counts counts;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .counts.bound = SIZE_MAX};

_Static_assert(sizeof(struct block) <= CACHE_LINE, "a block's head must fit the line before its bytes");

static void *
bytes_of(struct block *block)
{
    return (char *)block + CACHE_LINE;
}

static char *
end_of(struct block *block)
{
    return (char *)bytes_of(block) + block->capacity;
}

static struct block *
block_of(void *bytes)
{
    return (struct block *)((char *)bytes - CACHE_LINE);
}

/* VECADD_POOL_BYTES if it is set, where 0 keeps nothing; else an eighth of the memory that this process may use. */
static size_t
usual_bound(bool *wished_for)
{
    const char *wish = getenv("VECADD_POOL_BYTES");
    char *end = NULL;
    errno = 0;
    const unsigned long long wished = wish ? strtoull(wish, &end, 10) : 0;
    *wished_for = wish && *wish >= '0' && *wish <= '9' && *end == '\0' && errno == 0;
    if (*wished_for)
        return wished < SIZE_MAX ? (size_t)wished : SIZE_MAX - 1;
    return ram_usable(CGROUP_MEMBERSHIP, CGROUP_MOUNT) / USUAL_SHARE;
}

static bool
has_limit(int resource)
{
    struct rlimit limit;
    return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/* If the address space has a limit, the rest of the process lacks the memory that the pool keeps, and cannot ask for
 * it: nothing is kept then, unless VECADD_POOL_BYTES asks for it. A program may set the limit at any time. */
static void
find_bound(void)
{
    if (pool.counts.bound == SIZE_MAX) {
        pool.usual = usual_bound(&pool.wished);
        pool.has_huge = huge_pages_are_there();
    }
    const bool keeps = pool.wished || (!has_limit(RLIMIT_AS) && !has_limit(RLIMIT_DATA));
    pool.counts.bound = keeps ? pool.usual : 0;
    pool.cuts = pool.counts.bound >= CUTTING_BOUND && pool.has_huge;
}

static void
lock(void)
{
    pthread_mutex_lock(&pool.lock);
    if (pool.counts.bound == SIZE_MAX)
        find_bound();
}

/* The two system calls are for sums of 1 MiB and more, when they are given back: they take 0.5 us, such a sum 15. */
static void
lock_for(size_t capacity)
{
    lock();
    if (capacity >= OUTPUT_POOL_MIN)
        find_bound();
}

static void
unlock(void)
{
    pthread_mutex_unlock(&pool.lock);
}

/* The block size for `bytes`; 0 if no block can be so large. */
static size_t
capacity_for(size_t bytes)
{
    size_t step = GRANULE;
    while (step < bytes / STEPS)
        step *= 2;
    if (bytes > PTRDIFF_MAX - step - HUGE_PAGE - PAGE)
        return 0;
    return (bytes + step - 1) / step * step;
}

static struct block *
block_map(size_t capacity)
{
    const size_t mapped = capacity + HUGE_PAGE + PAGE;
    void *mapping = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
        return NULL;
    const uintptr_t begin = ((uintptr_t)mapping + PAGE + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    madvise((void *)begin, capacity, MADV_HUGEPAGE); /* for systems that do not use huge pages by themselves */
    struct block *block = block_of((void *)begin);
    *block = (struct block){.memory = mapping, .mapped = mapped, .capacity = capacity};
    return block;
}

/* From the pool's region, else from a new one, which then is the pool's. The block's head may be the first that is
 * written on a huge page, so it is written without the lock. */
static struct block *
block_cut(size_t capacity)
{
    const int threads = capacity >= CLEARED_TOGETHER_MIN ? threads_available() : 1;
    struct huge_pages pages = {0};
    lock();
    struct huge_region *region = pool.region;
    char *bytes = region ? huge_region_allocate(region, CACHE_LINE, capacity, CACHE_LINE) : NULL;
    if (bytes)
        pages = huge_region_pages_to_prefault(region, threads);
    unlock();
    prefault_huge_pages(pages);
    if (!bytes) {
        region = huge_region_map();
        if (!region)
            return NULL;
        bytes = huge_region_allocate(region, CACHE_LINE, capacity, CACHE_LINE);
        lock();
        pool.region = region;
        unlock();
    }
    struct block *block = block_of(bytes);
    *block = (struct block){.memory = region, .mapped = CUT, .capacity = capacity};
    return block;
}

/* `cut`: from a huge page, if there is one. */
static struct block *
block_make(size_t capacity, bool cut)
{
    if (capacity >= MAPPED_MIN)
        return block_map(capacity);
    struct block *of_region = cut ? block_cut(capacity) : NULL;
    if (of_region)
        return of_region;
    void *memory = malloc(capacity + 2 * CACHE_LINE); /* aligned_alloc would leave gaps, and touch more of the heap */
    if (memory == NULL)
        return NULL;
    struct block *block = block_of((void *)(((uintptr_t)memory + 2 * CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE));
    *block = (struct block){.memory = memory, .capacity = capacity};
    return block;
}

static void
block_destroy(struct block *block)
{
    if (block->mapped)
        munmap(block->memory, block->mapped);
    else
        free(block->memory);
}

static struct block **
bucket_of(size_t capacity)
{
    return &pool.bucket[(capacity * 0x9E3779B97F4A7C15U) >> 57];
}

static void
unlink_kept(struct block *block)
{
    *(block->bucket_newer ? &block->bucket_newer->bucket_older : bucket_of(block->capacity)) = block->bucket_older;
    if (block->bucket_older)
        block->bucket_older->bucket_newer = block->bucket_newer;
    *(block->newer ? &block->newer->older : &pool.newest) = block->older;
    *(block->older ? &block->older->newer : &pool.oldest) = block->newer;
    pool.counts.kept_bytes -= block->capacity;
    pool.counts.kept_blocks--;
}

static void
link_kept(struct block *block)
{
    block->since = now_ns();
    block->newer = NULL;
    block->older = pool.newest;
    *(pool.newest ? &pool.newest->newer : &pool.oldest) = block;
    pool.newest = block;
    struct block **bucket = bucket_of(block->capacity);
    block->bucket_newer = NULL;
    block->bucket_older = *bucket;
    if (*bucket)
        (*bucket)->bucket_newer = block;
    *bucket = block;
    pool.counts.kept_bytes += block->capacity;
    pool.counts.kept_blocks++;
}

/* Pages of a region that goes as a whole need not go one by one; no other block is cut from it then. */
static void
see_who_stays(struct block *block)
{
    struct huge_region *region = block->memory;
    block->alone = region->leaving < region->blocks;
    if (!block->alone && pool.region == region)
        pool.region = NULL;
}

/* Takes out the oldest blocks until no more than `bytes` are kept and none since before `since`. Returns them as a list
 * linked by `older`; pass it to destroy_all after unlocking. */
static struct block *
take_oldest(size_t bytes, long long since)
{
    struct block *taken = NULL;
    while (pool.counts.kept_bytes > bytes || (pool.oldest && pool.oldest->since < since)) {
        struct block *block = pool.oldest;
        unlink_kept(block);
        block->older = taken;
        taken = block;
        if (block->mapped == CUT)
            ((struct huge_region *)block->memory)->leaving++;
    }
    for (struct block *block = taken; block; block = block->older)
        if (block->mapped == CUT)
            see_who_stays(block);
    return taken;
}

/* Gives back this block of a region, and those after it in the list that adjoin it in memory, so that the pages that
 * they share go too. The region goes with its last block. Returns the rest of the list. */
static struct block *
leave_region(struct block *block, size_t *bytes)
{
    struct huge_region *region = block->memory;
    const bool alone = block->alone;
    char *begin = (char *)block, *end = begin;
    size_t blocks = 0;
    while (block && block->mapped == CUT && ((char *)block == end || end_of(block) == begin)) {
        begin = (char *)block < begin ? (char *)block : begin;
        end = end_of(block) > end ? end_of(block) : end;
        *bytes += block->capacity;
        blocks++;
        block = block->older;
    }
    if (alone)
        huge_region_discard(region, begin, (size_t)(end - begin));
    lock();
    region->leaving -= blocks;
    region->blocks -= blocks;
    const bool last = region->blocks == 0;
    unlock();
    if (last)
        huge_region_unmap(region);
    return block;
}

static size_t
destroy_all(struct block *block)
{
    size_t bytes = 0;
    while (block) {
        if (block->mapped == CUT) {
            block = leave_region(block, &bytes);
            continue;
        }
        struct block *next = block->older;
        bytes += block->capacity;
        block_destroy(block);
        block = next;
    }
    return bytes;
}

static struct block *
find_kept(size_t capacity)
{
    struct block *block = *bucket_of(capacity); /* the newest is the likeliest to be in a cache */
    while (block && block->capacity != capacity)
        block = block->bucket_older;
    if (block)
        unlink_kept(block);
    return block;
}

/* Its bytes if a sum of fewer than OUTPUT_POOL_MIN may have it. */
static size_t
small(const struct block *block)
{
    return block->capacity <= OUTPUT_POOL_MIN ? block->capacity : 0;
}

static void
count_used(const struct block *block)
{
    pool.counts.used_bytes += block->capacity;
    pool.counts.used_blocks++;
    pool.small_used += small(block);
}

static void
uncount_used(const struct block *block)
{
    pool.counts.used_bytes -= block->capacity;
    pool.counts.used_blocks--;
    pool.small_used -= small(block);
}

/* *zeros: whether the block is all zeros. */
static struct block *
take(size_t bytes, bool *zeros)
{
    const size_t capacity = capacity_for(bytes);
    if (capacity == 0)
        return NULL;
    lock();
    struct block *block = find_kept(capacity);
    if (block)
        count_used(block);
    const bool cut = pool.cuts;
    unlock();
    *zeros = false;
    if (block)
        return block;

    block = block_make(capacity, cut);
    if (block == NULL && output_pool_empty() > 0)
        block = block_make(capacity, cut);
    if (block == NULL)
        return NULL;
    *zeros = block->mapped > 0;
    lock();
    count_used(block);
    unlock();
    return block;
}

void *
output_pool_take(size_t bytes)
{
    bool zeros;
    struct block *block = take(bytes, &zeros);
    return block ? bytes_of(block) : NULL;
}

void *
output_pool_take_zeroed(size_t bytes)
{
    bool zeros;
    struct block *block = take(bytes, &zeros);
    if (block && !zeros)
        memset(bytes_of(block), 0, bytes);
    return block ? bytes_of(block) : NULL;
}

void
output_pool_give(void *bytes)
{
    if (bytes == NULL)
        return;
    struct block *block = block_of(bytes);
    lock_for(block->capacity);
    uncount_used(block);
    link_kept(block);
    struct block *taken = take_oldest(pool.counts.bound, block->since - UNUSED_NS);
    unlock();
    destroy_all(taken);
}

bool
output_pool_age(void)
{
    lock_for(SIZE_MAX);
    struct block *taken = take_oldest(pool.counts.bound, now_ns() - UNUSED_NS);
    const bool has_blocks = pool.counts.kept_blocks + pool.counts.used_blocks > 0;
    unlock();
    destroy_all(taken);
    return has_blocks;
}

void *
output_pool_resize(void *bytes, size_t wanted)
{
    const size_t capacity = block_of(bytes)->capacity;
    if (capacity_for(wanted) == capacity)
        return bytes;
    void *moved = output_pool_take(wanted);
    if (moved) {
        memcpy(moved, bytes, wanted < capacity ? wanted : capacity);
        output_pool_give(bytes);
    }
    return moved;
}

size_t
output_pool_empty(void)
{
    lock();
    struct block *taken = take_oldest(0, 0);
    unlock();
    return destroy_all(taken);
}

bool
output_pool_cuts(size_t *used)
{
    lock();
    const bool cuts = pool.cuts;
    *used = pool.small_used;
    unlock();
    return cuts;
}

struct output_pool_counts
output_pool_counts(void)
{
    lock_for(SIZE_MAX);
    const struct output_pool_counts counts = pool.counts;
    unlock();
    return counts;
}

/* If another thread had the lock at the fork, the list may be half changed: the child then forgets the kept blocks. */
static void
in_forked_child(bool used_cuda)
{
    (void)used_cuda;
    const bool whole = pthread_mutex_trylock(&pool.lock) == 0;
    pool.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    if (whole)
        return;
    pool.newest = pool.oldest = NULL;
    memset(pool.bucket, 0, sizeof pool.bucket);
    pool.region = NULL;
    pool.counts.kept_bytes = pool.counts.kept_blocks = 0;
}

static void __attribute__((constructor)) register_hooks(void)
{
    static struct runtime_hooks hooks = {.in_forked_child = in_forked_child};
    runtime_register(&hooks);
    threads_when_idle(output_pool_age, OUTPUT_POOL_SECONDS);
}
