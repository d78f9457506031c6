/* Reads two files, adds them and writes a third: on several threads, in bounded memory. */
#ifndef VECADD_FILES_RUN_H
#define VECADD_FILES_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "files/add_tile.h"
#include "files/tiles.h"

/* Adds a tile that add_tile does not. Returns 0, or -1 to end the run. Called in several threads at once; `worker`
 * counts them from 0. */
typedef int files_add_function(void *context, int worker, const struct tiles *tiles, const struct tile *tile,
                               char *const at[LAYOUT_OPERANDS]);

/* Called in the thread that has called files_run, after each stretch of tiles, in their order: with the elements of the
 * sum that are written. Returns 0, or -1 to end the run. */
typedef int files_tell_function(void *context, size_t done);

/* Called in the thread that has called files_run, at the beginning and every tenth of a second: a place to look for
 * signals. Returns 0, or -1 to end the run. */
typedef int files_check_function(void *context);

enum { FILES_MOST_THREADS = 64 };

/* An addition of three open files. */
struct files_run {
    /* Filled in by the caller. The files are open, their arrays begin at `offset`, and `tiles` has layout and itemsize.
     */
    int descriptor[LAYOUT_OPERANDS];
    off_t offset[LAYOUT_OPERANDS];
    struct tiles tiles;
    struct tile_adder adder;
    size_t window; /* bytes of each file that a thread has in memory; eight times as many where the orders differ */
    int threads;   /* at most */
    bool moves;    /* nothing is added: the first input is written. What an addition is measured against */
    files_check_function *check;
    files_add_function *add;
    files_tell_function *tell; /* NULL: no thread waits for it */
    void *context;

    /* Filled in by files_prepare. */
    size_t together, stretches; /* tiles of a stretch, which one thread takes at a time, and how many there are */
    size_t room[LAYOUT_OPERANDS];
    size_t memory; /* bytes */
};

/* Errors beside errno's. */
enum {
    FILES_ENDED = -1,     /* `check`, `tell` or `add` has ended the run */
    FILES_CUT_SHORT = -2, /* an input has become shorter */
};

struct files_outcome {
    int error;      /* 0, an errno or one of those above */
    int operand;    /* the one whose file failed; -1: no file did */
    unsigned flags; /* floating-point flags (base/dtype.h) that the addition raised */
};

/* Cuts the addition into stretches and finds the memory that it takes. */
void files_prepare(struct files_run *run);

/* Adds, in `memory`. No thread of it works any more when it returns. It may not return: where `check` or `tell` asks
 * for the GIL while the interpreter finalises, CPython ends the thread (up to 3.13) or stops it. The threads then go on
 * to the end of the process, so `run`, `memory` and the context are not on the caller's stack. */
struct files_outcome files_run(const struct files_run *run, char *memory);

#endif
