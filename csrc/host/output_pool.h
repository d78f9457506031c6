/* Memory for new sums. A block returns to the pool when the caller drops its sum, so that the next sum writes to pages
 * that already exist: faulting in and zeroing fresh pages costs 1.5 to 2.5 times the addition. Large blocks are
 * mappings of huge pages, smaller ones are cut from such mappings.
 *
 * Any thread may call any of these; none of them makes a CUDA call. */
#ifndef VECADD_HOST_OUTPUT_POOL_H
#define VECADD_HOST_OUTPUT_POOL_H

#include <stdbool.h>
#include <stddef.h>

/* Use malloc for smaller blocks, unless many are kept: the C library keeps freed memory too. */
enum { OUTPUT_POOL_MIN = 1 << 20 };

/* Seconds after which an unused block goes back to the system. The next sum then writes to fresh pages: on
 * two cores of an EPYC 79 ms in place of 35 for 200 MB, 25 in place of 11 for 64 MB; numpy.add takes 80 and 25, each
 * time. */
enum { OUTPUT_POOL_SECONDS = 5 };

/* A block of at least `bytes`, aligned to a cache line, with undefined content; the caller owns it. If memory is short,
 * the pool first gives all kept blocks back to the system; NULL if that does not help. */
void *output_pool_take(size_t bytes);

/* As output_pool_take, with `bytes` zeros. */
void *output_pool_take_zeroed(size_t bytes);

/* Takes a block back and keeps it; ignores NULL. The oldest blocks go back to the system when the kept ones exceed the
 * bound: VECADD_POOL_BYTES, or an eighth of the memory that this process may use (nothing where RLIMIT_AS or
 * RLIMIT_DATA limits the address space), and when they have been kept for OUTPUT_POOL_SECONDS. */
void output_pool_give(void *block);

/* Gives those back that have been kept for OUTPUT_POOL_SECONDS. For a thread that has nothing else to do. Returns
 * whether there are blocks, kept or used. */
bool output_pool_age(void);

/* Returns a block of `bytes` with as much of the content of `block` as fits, and takes `block` back. Returns NULL, with
 * `block` unchanged, if there is no memory. */
void *output_pool_resize(void *block, size_t bytes);

/* Gives all kept blocks back to the system; returns their bytes. */
size_t output_pool_empty(void);

/* Whether blocks below OUTPUT_POOL_MIN are cut from huge pages, so that new ones are sooner written than malloc's.
 * *used: the bytes of such blocks that callers own. */
bool output_pool_cuts(size_t *used);

struct output_pool_counts {
    size_t used_bytes, used_blocks; /* owned by callers */
    size_t kept_bytes, kept_blocks; /* in the pool */
    size_t bound;                   /* of kept_bytes */
};
struct output_pool_counts output_pool_counts(void);

/* --- Parts of the pool, here for its tests alone.
 *
 * Mappings of huge pages that blocks are cut from, one after the other. To fault in 256 KiB as pages of 4 KiB takes 88
 * us on two cores of an EPYC, 76 if one call asks for all 64 of them (MADV_POPULATE_WRITE), and 16 as the eighth of a
 * huge page.
 *
 * The caller sees to it that no two threads use a region at once. */
enum {
    HUGE_PAGE = 2 << 20,
    HUGE_REGION = 32 << 20, /* bytes of a region: the system backs a huge page of it when a block there is written */
};

/* At the start of its mapping. */
struct huge_region {
    size_t cut;     /* bytes from here on that blocks have had, and this */
    size_t blocks;  /* that have not gone back */
    size_t leaving; /* of these: on their way back */
    size_t backed;  /* bytes from here on whose pages have been left to the threads that write, or faulted in */
};

/* Whether the system gives huge pages of HUGE_PAGE bytes to programs that ask for them. Reads files. */
bool huge_pages_are_there(void);

/* NULL if there is no memory. */
struct huge_region *huge_region_map(void);

void huge_region_unmap(struct huge_region *region);

/* A block of zeros, with that alignment and with `before` bytes in front of it that are the caller's too; NULL if the
 * region has no room for it. */
void *huge_region_allocate(struct huge_region *region, size_t before, size_t bytes, size_t alignment);

/* Huge pages of a region that follow each other. */
struct huge_pages {
    char *first;
    size_t count;
};

/* The pages that several threads should fault in at once. None until blocks have been cut as far as the next page; then
 * as many pages as the region already has, so that at most half of the backed memory was never cut, but at most one a
 * thread. A single page is left to the thread that writes the block. */
struct huge_pages huge_region_pages_to_prefault(struct huge_region *region, int threads);

/* Faults in the pages, each by one thread, at most one by the caller; pages of busy workers are left to the threads
 * that write there. Writes to the pages meanwhile are safe. On an EPYC one thread zeroes a huge page in 180 us, and two
 * threads two of them in 195. Where other programs keep the processors busy the caller now and then waits 4 to 11 ms
 * for a worker that has lost its own, as it does in the sums themselves. To leave the pages to the threads that write
 * after such a wait gained nothing: beside busy programs sums took 0.8 to 1.25 times as long with it. */
void prefault_huge_pages(struct huge_pages pages);

#endif
