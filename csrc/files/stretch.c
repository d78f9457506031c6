#include "files/stretch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/min_max.h"
#include "base/strided.h"

/* One tile's reads or writes: the runs go to `at`, or come from it, one behind the other. */
struct moving {
    const struct file *file;
    off_t offset;
    char *at;
    bool writes;
};

static int
move_run(void *context, off_t at, size_t bytes)
{
    struct moving *moving = context;
    char *memory = moving->at;
    moving->at += bytes;
    return moving->writes ? file_write(moving->file, memory, bytes, moving->offset + at)
                          : file_read(moving->file, memory, bytes, moving->offset + at);
}

static int
move_tile(const struct stretches *stretches, const struct tile *tile, int operand, char *at)
{
    struct moving moving = {&stretches->file[operand], stretches->run->offset[operand], at, operand == LAYOUT_SUM};
    return tile_each_run(&stretches->run->tiles, tile, operand, move_run, &moving);
}

off_t
stretch_place(const struct files_run *run, const struct tile *tile)
{
    return run->offset[LAYOUT_SUM] + tile->start[0] * (ssize_t)run->tiles.itemsize[LAYOUT_SUM];
}

/* Bytes that stand before the tile in its buffer: a direct read fills whole pages. */
static size_t
bytes_before(const struct stretches *stretches, const struct tile *tile, int operand)
{
    const struct files_run *run = stretches->run;
    if (stretches->way != WAY_DIRECT)
        return 0;
    const size_t before = (size_t)(run->offset[operand] + tile->start[0] * run->tiles.layout.stride[operand][0]);
    return before % MAX_ITEMSIZE == 0 ? before % FILE_PAGE : 0;
}

/* Reads, adds and writes a tile; the sum goes to `mapped` where that is not NULL. */
static int
add_one(struct stretches *stretches, int worker, const struct tile *tile, char *mapped)
{
    const struct files_run *run = stretches->run;
    char *at[LAYOUT_OPERANDS], *memory = stretches->memory;
    size_t before[LAYOUT_OPERANDS];
    for (int k = 0; k < LAYOUT_OPERANDS; k++) {
        before[k] = bytes_before(stretches, tile, k);
        at[k] = memory + run->room[k] * (size_t)worker + before[k];
        memory += run->room[k] * (size_t)run->threads;
    }
    if (mapped)
        at[LAYOUT_SUM] = mapped;
    else if (before[0] == before[LAYOUT_SUM] && add_tile_in_place(&run->adder, &run->tiles))
        at[LAYOUT_SUM] = at[0]; /* which is in the cache */
    for (int k = 0; k < LAYOUT_SUM; k++) {
        const int error = move_tile(stretches, tile, k, at[k]);
        if (error)
            return error == FILE_CUT_SHORT ? FILES_CUT_SHORT - k : error;
    }
    unsigned flags = 0;
    if (run->moves) {
        if (mapped)
            memcpy(mapped, at[0], tile->size * run->tiles.itemsize[LAYOUT_SUM]);
    } else if (!add_tile(&run->adder, &run->tiles, tile, at, &flags) &&
               run->add(run->context, worker, &run->tiles, tile, at) < 0)
        return FILES_ENDED;
    if (flags)
        atomic_fetch_or_explicit(&stretches->flags, flags, memory_order_relaxed);
    return mapped ? 0 : move_tile(stretches, tile, LAYOUT_SUM, at[LAYOUT_SUM]);
}

static int
add_tiles(struct stretches *stretches, int worker, size_t begin, size_t end, char *pages, off_t place)
{
    struct tile tile;
    int error = 0;
    for (size_t number = begin; number < end && !error; number++) {
        if (atomic_load_explicit(&stretches->stopped, memory_order_relaxed))
            return FILES_ENDED;
        tiles_at(&stretches->run->tiles, number, &tile);
        error =
            add_one(stretches, worker, &tile, pages ? pages + (stretch_place(stretches->run, &tile) - place) : NULL);
    }
    return error;
}

int
stretch_add(struct stretches *stretches, int worker, size_t stretch)
{
    const struct files_run *run = stretches->run;
    const size_t begin = stretch * run->together, end = smaller(begin + run->together, run->tiles.count);
    const int sum = run->descriptor[LAYOUT_SUM];
    if (run->tiles.layout.ndim > 1)
        return add_tiles(stretches, worker, begin, end, NULL, 0);

    struct tile first, last;
    tiles_at(&run->tiles, begin, &first);
    tiles_at(&run->tiles, end - 1, &last);
    const off_t place = stretch_place(run, &first);
    const off_t bytes = stretch_place(run, &last) + last.extent[0] * (ssize_t)run->tiles.itemsize[LAYOUT_SUM] - place;
    if (stretches->way != WAY_MAPPED) {
        const int error = add_tiles(stretches, worker, begin, end, NULL, 0);
        if (!error && run->synced) /* what a file system does not know of comes with the fsync */
            (void)sync_file_range(sum, place, bytes, SYNC_FILE_RANGE_WRITE);
        return error;
    }
    const off_t before = place % sysconf(_SC_PAGESIZE);
    int error = posix_fallocate(sum, place, bytes); /* so that no access to its pages fails */
    if (error)
        return error;
    const size_t mapped = (size_t)(before + bytes);
    char *pages = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, sum, place - before);
    if (pages == MAP_FAILED)
        return errno;
    error = add_tiles(stretches, worker, begin, end, pages + before, place);
    munmap(pages, mapped);
    return error;
}
