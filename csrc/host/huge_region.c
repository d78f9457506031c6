#include "host/huge_region.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/min_max.h"

enum {
    PAGE = 4096,
    AHEAD_MAX = 8, /* huge pages */
};

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
huge_regions_are_there(void)
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
huge_region_cut(struct huge_region *region, size_t before, size_t bytes, size_t alignment)
{
    const size_t begin = (region->cut + before + alignment - 1) / alignment * alignment;
    if (begin > HUGE_REGION || bytes > HUGE_REGION - begin)
        return NULL;
    region->cut = begin + bytes;
    region->blocks++;
    return (char *)region + begin;
}

struct huge_pages
huge_region_pages_to_back(struct huge_region *region, int threads)
{
    if (region->cut <= region->backed)
        return (struct huge_pages){0};
    const size_t needed = (region->cut + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE, from = region->backed;
    const size_t ahead = smaller(from, smaller((size_t)threads, AHEAD_MAX) * HUGE_PAGE);
    region->backed = smaller(larger(needed, from + ahead), HUGE_REGION);
    const size_t count = (region->backed - from) / HUGE_PAGE;
    return (struct huge_pages){(char *)region + from, count > 1 && threads > 1 ? count : 0};
}

void
huge_region_discard(struct huge_region *region, void *from, size_t bytes)
{
    const uintptr_t begin = ((uintptr_t)from + PAGE - 1) / PAGE * PAGE, end = ((uintptr_t)from + bytes) / PAGE * PAGE;
    if (begin >= end)
        return;
    /* From the region's begin, and so at most two ranges of a region differ for the system. */
    madvise(region, (end + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE - (uintptr_t)region, MADV_NOHUGEPAGE);
    madvise((void *)begin, end - begin, MADV_DONTNEED);
}
