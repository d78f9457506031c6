#include "py/calls/batch_memory.h"

int
batch_memory_note(struct batch_memory *memory, const struct batch_call *call, Py_ssize_t pair, enum role role,
                  const void *data, size_t bytes)
{
    if (!call->lists[ROLE_OUT] || bytes == 0)
        return 0;
    if (!memory->intervals && !(memory->intervals = PyMem_New(struct interval, ROLE_COUNT * (size_t)call->count))) {
        PyErr_NoMemory();
        return -1;
    }
    memory->intervals[memory->count++] = (struct interval){
        .begin = (uintptr_t)data, .end = (uintptr_t)data + bytes, .group = (size_t)pair, .written = role == ROLE_OUT};
    return 0;
}

/* A stretch of addresses that holds several arrays; none at first. */
struct hull {
    uintptr_t begin, end;
};

static inline void
hull_add(struct hull *hull, const void *data, size_t bytes)
{
    const uintptr_t begin = (uintptr_t)data;
    hull->begin = begin < hull->begin ? begin : hull->begin;
    hull->end = begin + bytes > hull->end ? begin + bytes : hull->end;
}

/* Whether it is plain to see that no out overlaps another pair's array: each out lies behind the outs before it, and
 * all arrays that are only read lie before the first out or behind the last. A sort takes seven times as long. */
static bool
is_apart(const struct batch_add *adds, size_t count)
{
    struct hull read = {UINTPTR_MAX, 0}, written = read;
    for (size_t i = 0; i < count; i++) {
        const struct batch_add *add = &adds[i];
        const size_t bytes = add->n * component_size[add->component];
        if (bytes == 0)
            continue;
        if (add->c && (uintptr_t)add->c < written.end)
            return false;
        if (add->c)
            hull_add(&written, add->c, bytes);
        if (add->a != add->c)
            hull_add(&read, add->a, bytes);
        if (add->b != add->c)
            hull_add(&read, add->b, bytes);
    }
    return read.end <= written.begin || written.end <= read.begin;
}

/* Stores the arrays of the pairs in call->adds. Returns their number. An input that is its pair's out is left out. */
static size_t
store_adds(const struct batch_call *call, struct interval *intervals)
{
    size_t stored = 0;
    for (size_t i = 0; i < call->add_count; i++) {
        const struct batch_add *add = &call->adds[i];
        const size_t bytes = add->n * component_size[add->component];
        const void *const data[ROLE_COUNT] = {add->a, add->b, add->c};
        for (int role = 0; role < ROLE_COUNT && bytes; role++)
            if (data[role] && (role == ROLE_OUT || data[role] != add->c))
                intervals[stored++] = (struct interval){.begin = (uintptr_t)data[role],
                                                        .end = (uintptr_t)data[role] + bytes,
                                                        .group = (size_t)call->add_pair[i],
                                                        .written = role == ROLE_OUT};
    }
    return stored;
}

int
batch_memory_check(const struct batch_memory *memory, const struct batch_call *call)
{
    if (!call->lists[ROLE_OUT] || (memory->count == 0 && is_apart(call->adds, call->add_count)))
        return 0;
    const size_t room = ROLE_COUNT * call->add_count + memory->count;
    struct interval *intervals = PyMem_New(struct interval, 2 * room);
    if (!intervals) {
        PyErr_NoMemory();
        return -1;
    }
    size_t count = store_adds(call, intervals), pairs[2];
    for (size_t i = 0; i < memory->count; i++)
        intervals[count++] = memory->intervals[i];
    const bool found = overlap_find(intervals, intervals + room, count, pairs);
    PyMem_Free(intervals);
    if (!found)
        return 0;
    PyErr_Format(PyExc_ValueError,
                 "pair %zu: its out overlaps an array of pair %zu, and the additions of one call are made in any "
                 "order: add these two one after the other",
                 pairs[0], pairs[1]);
    return -1;
}

void
batch_memory_clear(struct batch_memory *memory)
{
    PyMem_Free(memory->intervals);
    memory->intervals = NULL;
}
