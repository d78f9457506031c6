/* An addition of three open files as plain data, and how it is cut into stretches, each one thread's work at a time. */
#ifndef VECADD_FILES_DESCRIPTION_H
#define VECADD_FILES_DESCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "files/add_tile.h"
#include "files/tiles.h"

/* How the bytes get to the files and back. */
enum way {
    WAY_CACHE,  /* through the page cache */
    WAY_DIRECT, /* past it (O_DIRECT), as far as it lacks the bytes and whole pages are written */
    WAY_MAPPED, /* the sum is made in the pages of its file: for files in memory that no one can cut short */
    WAY_COUNT
};

/* Adds a tile that add_tile does not. Returns 0, or -1 to end the run. Called in several threads at once; `worker`
 * counts them from 0. */
typedef int files_add_function(void *context, int worker, const struct tiles *tiles, const struct tile *tile,
                               char *const at[LAYOUT_OPERANDS]);

/* Called in the thread that has files_run run: with the elements of the sum that are written, from its first one on,
 * and the floating-point flags so far. Returns 0, or -1 to end the run. */
typedef int files_tell_function(void *context, size_t done, unsigned flags);

enum { FILES_MOST_THREADS = 64 };

struct files_run {
    /* Filled in by the caller. The files are open, their arrays begin at `offset`, and `tiles` has layout and itemsize.
     */
    int descriptor[LAYOUT_OPERANDS];
    off_t offset[LAYOUT_OPERANDS];
    struct tiles tiles;
    struct tile_adder adder;
    size_t window; /* bytes of each file that a thread holds in memory; eight times as many where the orders differ */
    int threads;   /* at most */
    bool moves;    /* nothing is added: the first input is written. What an addition is measured against */
    enum way way;
    enum way other; /* unless it is WAY_CACHE, a long sum that lies in one run of its file does not go by `way`, but by
                     * the page cache and this way in turns, and then by the quicker of the two */
    size_t phase;   /* bytes of a turn; a sum is long from 16 of them on */
    bool synced;    /* the caller waits for the disk in the end: its writing begins at once */
    bool in_turn;   /* tell is called for each stretch; else now and then */
    files_add_function *add;
    files_tell_function *tell;
    void *context;

    /* Filled in by files_prepare. */
    size_t together, stretches; /* tiles of a stretch, and how many there are */
    size_t room[LAYOUT_OPERANDS];
    size_t memory; /* bytes */
};

/* Errors beside errno's. */
enum {
    FILES_ENDED = -2,     /* `tell` or `add` has ended the run */
    FILES_CUT_SHORT = -3, /* the first input has become shorter; one less: the second has */
};

/* Cuts the addition into stretches and finds the memory that it takes. */
void files_prepare(struct files_run *run);

#endif
