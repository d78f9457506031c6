#include "host/strided.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/layout.h"
#include "host/add.h"
#include "host/convert.h"
#include "host/threads.h"

enum {
    PIECE = 8 << 10, /* bytes of c at a time if an operand has a buffer: two buffers and c fit an L1 of 32 KiB */
    ROW_MIN = 32,    /* elements; two cores of an EPYC 7B13: 32 take 0.5 to 1.0 of NumPy's time, 16 up to 1.3 */
};

/* How the loop reads a row of an operand. */
enum way {
    WAY_DIRECT,    /* in place */
    WAY_CONVERTED, /* through a buffer */
    WAY_ONE,       /* one element repeated along the row: a buffer filled with it */
};

struct row_operand {
    enum way way;
    convert_function *convert; /* NULL: the operand has the sum's dtype */
    ptrdiff_t stride;          /* within a row */
    const char *filled_from;
    size_t filled; /* WAY_ONE: elements of the buffer that hold *filled_from */
    char *buffer;
};

struct loops {
    host_add_function *arrays, *with_one;
};

struct job {
    const struct strided *strided;
    const char *base[LAYOUT_OPERANDS]; /* the first element that the traversal visits */
    struct loops loops;
    size_t itemsize, components;
    bool commutes; /* a + b has the bits of b + a: float8's NaNs have a's sign */
};

static size_t
row_length(const struct layout *layout)
{
    return layout->ndim ? (size_t)layout->extent[0] : 1;
}

static ssize_t
row_stride(const struct layout *layout, int operand)
{
    return layout->ndim ? layout->stride[operand][0] : 0;
}

/* Bytes of the three arrays, repeated elements counted once. */
static size_t
bytes_moved(const struct strided *add)
{
    size_t bytes = 0;
    for (int k = 0; k < 3; k++) {
        size_t n = 1;
        for (int i = 0; i < add->layout.ndim; i++)
            n *= add->layout.stride[k][i] ? (size_t)add->layout.extent[i] : 1;
        bytes += n * dtype_table[add->dtype[k]].itemsize;
    }
    return bytes;
}

int
host_strided_plan(struct plan *plan, struct status *status)
{
    const struct strided *add = plan->strided;
    const struct dtype_row *dtype = &dtype_table[add->sum];
    plan->simd = host_simd_chosen(status);
    if (!plan->simd)
        return -1;
    /* A streaming store to part of a cache line transfers the whole line twice. In place, c has been read already: a
     * streaming store saves no read. */
    plan->schedule =
        host_schedule(&(struct host_request){.component = dtype->component,
                                             .n = layout_size(&add->layout) * dtype->components,
                                             .moved = bytes_moved(add),
                                             .unit = dtype->components,
                                             .in_place = plan->c && (plan->c == plan->a || plan->c == plan->b),
                                             .short_rows = row_length(&add->layout) * dtype->itemsize < PIECE});
    return 0;
}

/* Whether every row's address is aligned to the operand's component. */
static bool
aligned(const struct strided *add, int operand, const void *base)
{
    uintptr_t all = (uintptr_t)base;
    for (int i = 0; i < add->layout.ndim; i++)
        all |= (uintptr_t)add->layout.stride[operand][i];
    return all % component_size[dtype_table[add->dtype[operand]].component] == 0;
}

bool
host_strided_possible(const struct strided *add, const void *a, const void *b, const void *c)
{
    const struct layout *layout = &add->layout;
    const void *const base[] = {add->is_scalar[0] ? NULL : a, add->is_scalar[1] ? NULL : b, c};
    if (add->dtype[LAYOUT_SUM] != add->sum || row_length(layout) < ROW_MIN ||
        layout_sum_has_internal_overlap(layout, dtype_table[add->sum].itemsize))
        return false;
    for (int i = 0; i < 3; i++) {
        const enum dtype dtype = add->dtype[i];
        const bool side_by_side = row_stride(layout, i) == (ssize_t)dtype_table[dtype].itemsize;
        if (!aligned(add, i, base[i]) || !(side_by_side || (i < 2 && row_stride(layout, i) == 0)) ||
            (dtype != add->sum && !convert_for(dtype, add->sum)))
            return false;
    }
    return true;
}

/* Returns the n elements of a row from p on, converted and repeated for the loop: p itself or the operand's buffer. */
static const void *
bring(struct row_operand *operand, const char *p, size_t n, size_t itemsize)
{
    switch (operand->way) {
    case WAY_DIRECT:
        return p;
    case WAY_CONVERTED:
        operand->convert(p, operand->buffer, n);
        return operand->buffer;
    case WAY_ONE:
        break;
    }
    if (p != operand->filled_from)
        operand->filled = 0;
    if (operand->filled < n) {
        if (operand->convert)
            operand->convert(p, operand->buffer, 1);
        else
            memcpy(operand->buffer, p, itemsize);
        size_t bytes = itemsize;
        const size_t all = n * itemsize;
        for (; bytes < all; bytes *= 2)
            memcpy(operand->buffer + bytes, operand->buffer, bytes <= all - bytes ? bytes : all - bytes);
        operand->filled_from = p;
        operand->filled = n;
    }
    return operand->buffer;
}

/* Adds n elements of one row. */
static void
add_in_row(const struct job *job, struct row_operand operand[2], const char *a, const char *b, char *c, size_t n)
{
    const bool swapped = operand[0].way == WAY_ONE && job->commutes;
    if (operand[swapped].way == WAY_DIRECT && operand[!swapped].way == WAY_ONE) {
        const void *one = bring(&operand[!swapped], swapped ? a : b, REPEATED_BYTES / job->itemsize, job->itemsize);
        job->loops.with_one(swapped ? b : a, one, c, n * job->components);
        return;
    }
    const bool whole = operand[0].way == WAY_DIRECT && operand[1].way == WAY_DIRECT;
    const size_t most = whole ? n : PIECE / job->itemsize;
    for (size_t done = 0; done < n;) {
        const size_t m = n - done < most ? n - done : most;
        const void *x = bring(&operand[0], a + (ptrdiff_t)done * operand[0].stride, m, job->itemsize);
        const void *y = bring(&operand[1], b + (ptrdiff_t)done * operand[1].stride, m, job->itemsize);
        job->loops.arrays(x, y, c + done * job->itemsize, m * job->components);
        done += m;
    }
}

static struct row_operand
row_operand_of(const struct strided *add, int operand, char *buffer)
{
    const ptrdiff_t stride = row_stride(&add->layout, operand);
    const bool same = add->dtype[operand] == add->sum;
    return (struct row_operand){.way = stride == 0 ? WAY_ONE
                                       : same      ? WAY_DIRECT
                                                   : WAY_CONVERTED,
                                .convert = same ? NULL : convert_for(add->dtype[operand], add->sum),
                                .stride = stride,
                                .buffer = buffer};
}

/* threads_body: adds the elements [begin, end) of the traversal. */
static void
add_elements(void *context, size_t begin, size_t end, int worker)
{
    const struct job *job = context;
    (void)worker;
    alignas(64) char buffers[2][PIECE];
    const struct layout *layout = &job->strided->layout;
    struct row_operand operand[] = {row_operand_of(job->strided, 0, buffers[0]),
                                    row_operand_of(job->strided, 1, buffers[1])};

    ssize_t index[LAYOUT_DIMENSIONS];
    const char *at[] = {job->base[0], job->base[1], job->base[2]};
    size_t left = begin;
    for (int i = 0; i < layout->ndim; i++) {
        index[i] = (ssize_t)(left % (size_t)layout->extent[i]);
        left /= (size_t)layout->extent[i];
        for (int k = 0; k < LAYOUT_OPERANDS; k++)
            at[k] += index[i] * layout->stride[k][i];
    }

    while (begin < end) {
        const size_t in_row = (size_t)(layout->extent[0] - index[0]);
        const size_t n = in_row < end - begin ? in_row : end - begin;
        add_in_row(job, operand, at[0], at[1], (char *)at[2], n);
        begin += n;
        /* Moves to the start of the next row, carrying through the outer axes. */
        for (int k = 0; k < LAYOUT_OPERANDS; k++)
            at[k] -= index[0] * layout->stride[k][0];
        index[0] = 0;
        for (int i = 1; i < layout->ndim; i++) {
            const bool carry = ++index[i] == layout->extent[i];
            for (int k = 0; k < LAYOUT_OPERANDS; k++)
                at[k] += carry ? -(layout->extent[i] - 1) * layout->stride[k][i] : layout->stride[k][i];
            if (!carry)
                break;
            index[i] = 0;
        }
    }
}

/* The first element of an input that the traversal visits. */
static const char *
begin_of(const struct strided *add, int operand, const void *data)
{
    return add->is_scalar[operand] ? (const char *)add->scalar[operand]
                                   : (const char *)data + add->layout.offset[operand];
}

unsigned
host_strided_add(const struct plan *plan)
{
    const struct strided *add = plan->strided;
    const struct dtype_row *dtype = &dtype_table[add->sum];
    const struct host_schedule *schedule = &plan->schedule;
    const bool streaming = schedule->streaming;
    struct job job = {.strided = add,
                      .base = {begin_of(add, 0, plan->a), begin_of(add, 1, plan->b),
                               (const char *)plan->c + add->layout.offset[LAYOUT_SUM]},
                      .loops = {.arrays = host_loop(plan->simd, schedule, dtype->component, streaming),
                                .with_one = host_loop_with_one(plan->simd, schedule, dtype->component, streaming)},
                      .itemsize = dtype->itemsize,
                      .components = dtype->components,
                      .commutes = dtype->component != COMPONENT_E4M3FN};
    return host_run(schedule, plan->n, plan->n * dtype->itemsize, add_elements, &job);
}
