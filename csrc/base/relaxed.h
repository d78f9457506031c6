/* Numbers that threads share and nothing is ordered by: statistics, estimates. */
#ifndef VECADD_BASE_RELAXED_H
#define VECADD_BASE_RELAXED_H

#include <stdatomic.h>

static inline unsigned
relaxed_get(const atomic_uint *number)
{
    return atomic_load_explicit(number, memory_order_relaxed);
}

static inline void
relaxed_set(atomic_uint *number, unsigned value)
{
    atomic_store_explicit(number, value, memory_order_relaxed);
}

#endif
