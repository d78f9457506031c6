/* Detects whether a program keeps its sums of medium size. If it does, the output pool makes the next ones: in NumPy's
 * heap a kept sum pays for fresh pages, 9 us at 16 KiB and 135 at 256 KiB where the pool takes 3 and 35. If not,
 * NumPy's heap is faster, by 0.3 us a sum: NumPy asks for an allocator by a context variable.
 *
 * In NumPy's heap, a sum that was dropped is detected by its address, which a later sum gets again; in the pool, by the
 * bytes in use, which stay the same. */
#ifndef VECADD_PY_BASE_KEPT_SUMS_H
#define VECADD_PY_BASE_KEPT_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    KEPT_SUM_MIN = 16 << 10,    /* bytes; smaller sums are NumPy's */
    KEPT_SUMS_LOOK = 4,         /* this many times KEPT_SUMS_ENOUGH are judged together */
    KEPT_SUMS_ENOUGH = 3 << 20, /* bytes at addresses of their own, or in use and then not: some sums are kept */
    KEPT_SUMS_MOST = 1 << 30,   /* are enough, however often it was wrong */
    KEPT_SUMS_MET_BITS = 10,
};

/* Zeros at first. The caller has the GIL. */
struct kept_sums {
    bool pooled;        /* the next sum is the pool's */
    size_t more;        /* bytes that are needed beside KEPT_SUMS_ENOUGH: sums that take turns looked kept at first */
    size_t made, apart; /* in this look: bytes, and of these at addresses of their own */
    size_t least, most; /* in this look: bytes in use of the pool, before a sum that it makes */
    const void *met[1 << KEPT_SUMS_MET_BITS];
};

static inline void
kept_sums_look_anew(struct kept_sums *sums, bool pooled)
{
    sums->pooled = pooled;
    sums->made = sums->apart = sums->most = 0;
    sums->least = SIZE_MAX;
    memset(sums->met, 0, sizeof sums->met);
}

static inline bool
kept_sums_is_apart(struct kept_sums *sums, const void *data)
{
    const void **met = &sums->met[(uint64_t)(uintptr_t)data * 0x9E3779B97F4A7C15U >> (64 - KEPT_SUMS_MET_BITS)];
    const bool apart = *met != data;
    *met = data;
    return apart;
}

/* Notes where NumPy's heap has put a sum of KEPT_SUM_MIN bytes or more. */
static inline void
kept_sums_note_heap(struct kept_sums *sums, const void *data, size_t bytes)
{
    const size_t enough = KEPT_SUMS_ENOUGH + sums->more;
    sums->made += bytes;
    sums->apart += kept_sums_is_apart(sums, data) ? bytes : 0;
    if (sums->apart >= enough)
        kept_sums_look_anew(sums, true);
    else if (sums->made >= KEPT_SUMS_LOOK * enough) {
        if (sums->apart < KEPT_SUMS_ENOUGH)
            sums->more = 0;
        kept_sums_look_anew(sums, false);
    }
}

/* Notes where the pool has put one, and how many bytes were in use of it. Where sums take turns in such numbers that
 * they would look kept in NumPy's heap again, more are enough from now on. */
static inline void
kept_sums_note_pool(struct kept_sums *sums, const void *data, size_t bytes, size_t used)
{
    sums->made += bytes;
    sums->apart += kept_sums_is_apart(sums, data) ? bytes : 0;
    sums->least = used < sums->least ? used : sums->least;
    sums->most = used > sums->most ? used : sums->most;
    if (sums->made < KEPT_SUMS_LOOK * KEPT_SUMS_ENOUGH)
        return;
    const bool kept = sums->most - sums->least >= KEPT_SUMS_ENOUGH;
    if (!kept && sums->apart < KEPT_SUMS_ENOUGH)
        sums->more = 0;
    else if (!kept && sums->more < KEPT_SUMS_MOST)
        sums->more = 2 * (sums->more > sums->apart ? sums->more : sums->apart);
    kept_sums_look_anew(sums, kept);
}

#endif
