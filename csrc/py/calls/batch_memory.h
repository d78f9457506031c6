/* The memory of a list's pairs: whether an out overlaps an array of another pair. */
#ifndef VECADD_PY_CALLS_BATCH_MEMORY_H
#define VECADD_PY_CALLS_BATCH_MEMORY_H

#include "base/overlap.h"
#include "py/calls/batch_call.h"

/* The contiguous arrays of pairs that are not in call->adds. Begins as {0}. */
struct batch_memory {
    struct interval *intervals;
    size_t count;
};

/* Whether an addition's out shares some but not all of its memory with one of its inputs. */
static inline bool
batch_add_is_shifted(const struct batch_add *add)
{
    const size_t bytes = add->n * component_size[add->component];
    return add->c && (overlaps_in_part(add->a, add->c, bytes) || overlaps_in_part(add->b, add->c, bytes));
}

/* Returns 0, or -1 with an exception set. */
int batch_memory_note(struct batch_memory *memory, const struct batch_call *call, Py_ssize_t pair, enum role role,
                      const void *data, size_t bytes);

/* Looks at these and at call->adds. Returns 0, or -1 with an exception set that names two pairs. */
int batch_memory_check(const struct batch_memory *memory, const struct batch_call *call);

void batch_memory_clear(struct batch_memory *memory);

#endif
