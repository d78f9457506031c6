/* Mappings of huge pages that blocks are cut from, one behind the other. To fault in 256 KiB as pages of 4 KiB takes 88
 * us on two cores of an EPYC, 76 if one call asks for all 64 of them (MADV_POPULATE_WRITE), and 16 as the eighth of a
 * huge page.
 *
 * The caller sees to it that no two threads use a region at once. */
#ifndef VECADD_HOST_HUGE_REGION_H
#define VECADD_HOST_HUGE_REGION_H

#include <stdbool.h>
#include <stddef.h>

enum {
    HUGE_PAGE = 2 << 20,
    HUGE_REGION = 32 << 20, /* bytes of a region: the system backs a huge page of it when a block there is written */
};

/* At the begin of what it describes. */
struct huge_region {
    size_t cut;     /* bytes from here on that blocks have had, and this */
    size_t blocks;  /* that have not gone back */
    size_t leaving; /* of these: on their way back */
    size_t backed;  /* bytes from here on whose pages have been left to the threads that write, or faulted in */
};

/* Whether the system has huge pages of HUGE_PAGE bytes for who asks for them. Reads files. */
bool huge_regions_are_there(void);

/* NULL if there is no memory. */
struct huge_region *huge_region_map(void);

void huge_region_unmap(struct huge_region *region);

/* A block of zeros, as aligned as is asked for, with room before it that is the caller's too; NULL if the region has no
 * more. */
void *huge_region_cut(struct huge_region *region, size_t before, size_t bytes, size_t alignment);

/* Huge pages of a region that follow each other. */
struct huge_pages {
    char *first;
    size_t count;
};

/* The pages that several threads are to fault in at once: none until blocks have been cut as far as the next page, then
 * as many as the region has already, so that at most half of what is backed was never cut, and one a thread at most.
 * None where one page would do: the thread that writes the block faults that in. */
struct huge_pages huge_region_pages_to_back(struct huge_region *region, int threads);

/* Gives the pages that lie in these bytes of a block back to the system. No other block is cut from there. Asks for no
 * huge pages up to there any more: the system would make one of the few pages that are left, and 50 kept sums of 256
 * KiB would come to hold 100 MiB. Any thread may call it while the block is counted. */
void huge_region_discard(struct huge_region *region, void *from, size_t bytes);

#endif
