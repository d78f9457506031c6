#include "host/sum_moves.h"

#include <limits.h>
#include <stdatomic.h>

bool
sum_moves(size_t bytes, const void *sum)
{
    enum { CLASSES = sizeof(size_t) * CHAR_BIT }; /* of sizes, each twice the one before */
    static const void *_Atomic last[CLASSES];
    const void *_Atomic *const place = &last[CLASSES - 1 - __builtin_clzl(bytes | 1)];
    if (atomic_load_explicit(place, memory_order_relaxed) == sum)
        return false;
    atomic_store_explicit(place, sum, memory_order_relaxed);
    return true;
}
