/* Operands of a transfer in any mix of pinned and ordinary memory, and their sum. */
#ifndef VECADD_TRANSFER_ARRAYS_H
#define VECADD_TRANSFER_ARRAYS_H

#include <stdlib.h>
#include <string.h>

#include "base/plan.h"
#include "check.h"
#include "gpu/memory.h"
#include "sums.h"

enum { SALT_A = 1, SALT_B = 2 };

/* Several sets of slots on any machine. */
static void __attribute__((constructor)) set_three_threads(void)
{
    setenv("VECADD_NUM_THREADS", "3", 1);
}

struct arrays {
    void *a, *b, *c, *expected;
    bool pinned[3];
    size_t bytes;
    struct plan plan;
};

static inline void *
array_new(size_t bytes, bool pinned)
{
    struct status status;
    void *memory = NULL;
    if (pinned)
        CHECK(pinned_allocate(bytes, &memory, &status) == 0, "%s", status.text);
    else
        memory = malloc(bytes);
    return memory;
}

static inline void
array_free(void *memory, size_t bytes, bool pinned)
{
    if (pinned)
        pinned_release(memory, bytes);
    else
        free(memory);
}

/* Operands of n components; bit i of `pinned` for a, b, c. */
static inline struct arrays
arrays_new(enum component component, size_t n, int pinned)
{
    struct arrays arrays = {.pinned = {pinned & 1, pinned & 2, pinned & 4}, .bytes = n * component_size[component]};
    arrays.a = array_new(arrays.bytes, arrays.pinned[0]);
    arrays.b = array_new(arrays.bytes, arrays.pinned[1]);
    arrays.c = array_new(arrays.bytes, arrays.pinned[2]);
    arrays.expected = malloc(arrays.bytes);
    sums_fill(component, arrays.a, n, SALT_A);
    sums_fill(component, arrays.b, n, SALT_B);
    sums_expect(component, arrays.expected, n, SALT_A, SALT_B);
    memset(arrays.c, 0xee, arrays.bytes);
    arrays.plan = (struct plan){.route = ROUTE_TRANSFER,
                                .component = component,
                                .n = n,
                                .a = arrays.a,
                                .b = arrays.b,
                                .c = arrays.c,
                                .device = -1};
    return arrays;
}

static inline void
arrays_free(const struct arrays *arrays)
{
    array_free(arrays->a, arrays->bytes, arrays->pinned[0]);
    array_free(arrays->b, arrays->bytes, arrays->pinned[1]);
    array_free(arrays->c, arrays->bytes, arrays->pinned[2]);
    free(arrays->expected);
}

/* Whether each of the bytes is `value`: by one comparison, because a loop over them takes the sanitizers long. */
static inline bool
all_are(const void *array, size_t bytes, unsigned char value)
{
    const unsigned char *first = array;
    return bytes == 0 || (*first == value && memcmp(first, first + 1, bytes - 1) == 0);
}

static inline bool
has_sum(const struct arrays *arrays)
{
    return memcmp(arrays->c, arrays->expected, arrays->bytes) == 0;
}

#endif
