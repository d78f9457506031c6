/* One stretch: its tiles are read, added and written, one after the other, in the calling thread. */
#ifndef VECADD_FILES_STRETCH_H
#define VECADD_FILES_STRETCH_H

#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

#include "files/description.h"
#include "files/move.h"

/* What all stretches share. */
struct stretches {
    const struct files_run *run;
    struct file file[LAYOUT_OPERANDS];
    enum way way;        /* WAY_CACHE unless the sum lies in one run of its file */
    char *memory;        /* run->memory bytes, from a page's begin */
    atomic_bool stopped; /* a stretch then ends with its tile */
    atomic_uint flags;   /* floating-point flags (base/fpenv.h) raised so far */
};

/* Adds a stretch; `worker` counts the threads that do so at once from 0. Returns 0, an errno, or one of
 * description.h's errors. */
int stretch_add(struct stretches *stretches, int worker, size_t stretch);

/* Where in its file the sum of an addition with a single axis has that tile. */
off_t stretch_place(const struct files_run *run, const struct tile *tile);

#endif
