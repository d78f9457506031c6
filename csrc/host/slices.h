/* The slices of a job: a thread's share each, from which threads take blocks. */
#ifndef VECADD_HOST_SLICES_H
#define VECADD_HOST_SLICES_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/min_max.h"

enum { CACHE_LINE = 64 };

struct slice {
    alignas(CACHE_LINE) atomic_size_t next;
    size_t begin, end;
};

/* Takes the next block: *begin is where. */
static inline bool
slice_take(struct slice *slice, size_t block, size_t *begin)
{
    if (atomic_load_explicit(&slice->next, memory_order_relaxed) >= slice->end)
        return false;
    *begin = atomic_fetch_add_explicit(&slice->next, block, memory_order_relaxed);
    return *begin < slice->end;
}

/* Takes the slice's first block, unless another thread has. */
static inline bool
slice_begin(struct slice *slice, size_t block, size_t *begin)
{
    *begin = slice->begin;
    return *begin < slice->end && atomic_load_explicit(&slice->next, memory_order_relaxed) == *begin &&
           atomic_compare_exchange_strong(&slice->next, begin, *begin + block);
}

/* Cuts [0, n) into slices of whole blocks, as even as possible. */
static inline void
slices_cut(struct slice *slice, int count, size_t n, size_t block)
{
    const size_t blocks = (n - 1) / block + 1, share = blocks / (size_t)count, rest = blocks % (size_t)count;
    size_t begin = 0;
    for (int i = 0; i < count; i++) {
        const size_t end = begin + smaller((share + ((size_t)i < rest)) * block, n - begin);
        atomic_store_explicit(&slice[i].next, begin, memory_order_relaxed);
        slice[i].begin = begin;
        slice[i].end = end;
        begin = end;
    }
}

#endif
