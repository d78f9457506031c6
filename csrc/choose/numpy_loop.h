/* Chooses for one call of a loop of numpy.add whether vecadd adds it in NumPy's place. Independent of Python: the input
 * is addresses, steps, a count and a dtype. */
#ifndef VECADD_CHOOSE_NUMPY_LOOP_H
#define VECADD_CHOOSE_NUMPY_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/addition.h"
#include "base/plan.h"

/* What NumPy hands to a loop: out[i] = a[i] + b[i] for i from 0 to n - 1, in this order where the three share memory;
 * `step` is the bytes from an element to the next, 0 for one element that is read or written every time. */
struct loop_call {
    const char *a, *b;
    char *out;
    size_t n;
    ssize_t step[LAYOUT_OPERANDS];
    enum dtype dtype;
    struct fallback_loop below; /* the loop that has the call where no other thread takes part */
};

/* The bytes of out from which on vecadd may be ahead: below, one thread adds with ordinary stores, as NumPy does. */
size_t loop_least(void);

/* Whether vecadd adds the call, and then the plan. NumPy keeps calls that depend on the order of the elements (sums of
 * an axis, cumulative sums, any overlap in part), steps that leave gaps, and calls that vecadd adds no faster.
 * `addition` is storage for the plan, which borrows the call. `every_thread`: all threads share the call, however short
 * it is, for tests. Reads at most one element, and makes no CUDA call. */
bool plan_loop(struct plan *plan, struct addition *addition, const struct loop_call *call, bool every_thread);

#endif
