#include "host/strided.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/layout.h"
#include "host/add.h"
#include "host/threads.h"

/* --- Conversions. */

/* The C types of the dtypes. */
typedef uint8_t BOOL;
typedef int8_t INT8;
typedef int16_t INT16;
typedef int32_t INT32;
typedef int64_t INT64;
typedef uint8_t UINT8;
typedef uint16_t UINT16;
typedef uint32_t UINT32;
typedef uint64_t UINT64;
typedef float FLOAT32;
typedef double FLOAT64;

#define CONVERT_AS(From, To, value)                                                                                    \
    static void From##_to_##To(const void *from, void *to, size_t n)                                                   \
    {                                                                                                                  \
        const From *p = from;                                                                                          \
        To *q = to;                                                                                                    \
        for (size_t i = 0; i < n; i++)                                                                                 \
            q[i] = (To)(value);                                                                                        \
    }

/* `Real` is the type of a complex number's parts. */
#define CONVERT_TO_COMPLEX_AS(From, To, Real, value)                                                                   \
    static void From##_to_##To(const void *from, void *to, size_t n)                                                   \
    {                                                                                                                  \
        const From *p = from;                                                                                          \
        Real *q = to;                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            q[2 * i] = (Real)(value);                                                                                  \
            q[2 * i + 1] = 0;                                                                                          \
        }                                                                                                              \
    }

/* A bool's byte may have other values than 0 and 1, in views of other memory: as in NumPy's casts, any value but 0
 * becomes 1. */
#define CONVERT(From, To)                        CONVERT_AS(From, To, p[i])
#define CONVERT_TRUTH(From, To)                  CONVERT_AS(From, To, p[i] != 0)
#define CONVERT_TO_COMPLEX(From, To, Real)       CONVERT_TO_COMPLEX_AS(From, To, Real, p[i])
#define CONVERT_TRUTH_TO_COMPLEX(From, To, Real) CONVERT_TO_COMPLEX_AS(From, To, Real, p[i] != 0)

/* These lists define the functions and their table: every conversion that NumPy's promotion of two of these dtypes
 * needs. */
#define TRUTHS(X)                                                                                                      \
    X(BOOL, INT8)                                                                                                      \
    X(BOOL, INT16)                                                                                                     \
    X(BOOL, INT32)                                                                                                     \
    X(BOOL, INT64)                                                                                                     \
    X(BOOL, UINT8)                                                                                                     \
    X(BOOL, UINT16)                                                                                                    \
    X(BOOL, UINT32)                                                                                                    \
    X(BOOL, UINT64)                                                                                                    \
    X(BOOL, FLOAT32)                                                                                                   \
    X(BOOL, FLOAT64)
#define CONVERSIONS(X)                                                                                                 \
    X(INT8, INT16)                                                                                                     \
    X(INT8, INT32)                                                                                                     \
    X(INT8, INT64)                                                                                                     \
    X(INT8, FLOAT32)                                                                                                   \
    X(INT8, FLOAT64)                                                                                                   \
    X(INT16, INT32)                                                                                                    \
    X(INT16, INT64)                                                                                                    \
    X(INT16, FLOAT32)                                                                                                  \
    X(INT16, FLOAT64)                                                                                                  \
    X(INT32, INT64)                                                                                                    \
    X(INT32, FLOAT64)                                                                                                  \
    X(INT64, FLOAT64)                                                                                                  \
    X(UINT8, INT16)                                                                                                    \
    X(UINT8, INT32)                                                                                                    \
    X(UINT8, INT64)                                                                                                    \
    X(UINT8, UINT16)                                                                                                   \
    X(UINT8, UINT32)                                                                                                   \
    X(UINT8, UINT64)                                                                                                   \
    X(UINT8, FLOAT32)                                                                                                  \
    X(UINT8, FLOAT64)                                                                                                  \
    X(UINT16, INT32)                                                                                                   \
    X(UINT16, INT64)                                                                                                   \
    X(UINT16, UINT32)                                                                                                  \
    X(UINT16, UINT64)                                                                                                  \
    X(UINT16, FLOAT32)                                                                                                 \
    X(UINT16, FLOAT64)                                                                                                 \
    X(UINT32, INT64)                                                                                                   \
    X(UINT32, UINT64)                                                                                                  \
    X(UINT32, FLOAT64)                                                                                                 \
    X(UINT64, FLOAT64)                                                                                                 \
    X(FLOAT32, FLOAT64)
#define TRUTHS_TO_COMPLEX(X)                                                                                           \
    X(BOOL, COMPLEX64, float)                                                                                          \
    X(BOOL, COMPLEX128, double)
#define CONVERSIONS_TO_COMPLEX(X)                                                                                      \
    X(INT8, COMPLEX64, float)                                                                                          \
    X(INT16, COMPLEX64, float)                                                                                         \
    X(UINT8, COMPLEX64, float)                                                                                         \
    X(UINT16, COMPLEX64, float)                                                                                        \
    X(FLOAT32, COMPLEX64, float)                                                                                       \
    X(INT8, COMPLEX128, double)                                                                                        \
    X(INT16, COMPLEX128, double)                                                                                       \
    X(INT32, COMPLEX128, double)                                                                                       \
    X(INT64, COMPLEX128, double)                                                                                       \
    X(UINT8, COMPLEX128, double)                                                                                       \
    X(UINT16, COMPLEX128, double)                                                                                      \
    X(UINT32, COMPLEX128, double)                                                                                      \
    X(UINT64, COMPLEX128, double)                                                                                      \
    X(FLOAT32, COMPLEX128, double)                                                                                     \
    X(FLOAT64, COMPLEX128, double)

TRUTHS(CONVERT_TRUTH)
CONVERSIONS(CONVERT)
TRUTHS_TO_COMPLEX(CONVERT_TRUTH_TO_COMPLEX)
CONVERSIONS_TO_COMPLEX(CONVERT_TO_COMPLEX)

static void
COMPLEX64_to_COMPLEX128(const void *from, void *to, size_t n)
{
    FLOAT32_to_FLOAT64(from, to, 2 * n);
}

#define ENTRY(From, To)                  [DTYPE_##From][DTYPE_##To] = From##_to_##To,
#define ENTRY_TO_COMPLEX(From, To, Real) ENTRY(From, To)

static convert_function *const conversions[DTYPE_COUNT][DTYPE_COUNT] = {TRUTHS(ENTRY) CONVERSIONS(
    ENTRY) TRUTHS_TO_COMPLEX(ENTRY_TO_COMPLEX) CONVERSIONS_TO_COMPLEX(ENTRY_TO_COMPLEX) ENTRY(COMPLEX64, COMPLEX128)};

convert_function *
convert_for(enum dtype from, enum dtype to)
{
    return conversions[from][to];
}

/* --- Additions. */

enum {
    PIECE = 8 << 10, /* bytes of c at a time if an operand has a buffer: two buffers and c fit an L1 of 32 KiB */
    ROW_MIN = 32,    /* elements; two cores of an EPYC 7B13: 32 take 0.5 to 1.0 of NumPy's time, 16 up to 1.3 */
};

/* How the loop reads a row of an operand. */
enum reading {
    READ_IN_PLACE,  /* in place */
    READ_CONVERTED, /* through a buffer */
    READ_REPEATED,  /* one element repeated along the row: a buffer filled with it */
};

struct row_operand {
    enum reading reading;
    convert_function *convert; /* NULL: the operand has the sum's dtype */
    ptrdiff_t stride;          /* within a row */
    const char *filled_from;
    size_t filled; /* READ_REPEATED: elements of the buffer that are *filled_from */
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

struct host_request
host_strided_request(const struct plan *plan)
{
    const struct strided *add = plan->strided;
    const struct dtype_row *dtype = &dtype_table[add->sum];
    /* A streaming store to part of a cache line transfers the whole line twice. */
    return (struct host_request){.component = dtype->component,
                                 .n = layout_size(&add->layout) * dtype->components,
                                 .moved = bytes_moved(add),
                                 .unit = dtype->components,
                                 .in_place = plan->c && (plan->c == plan->a || plan->c == plan->b),
                                 .short_rows = row_length(&add->layout) * dtype->itemsize < PIECE};
}

/* Whether every row's address is aligned to the operand's component. */
static bool
rows_are_aligned(const struct strided *add, int operand, const void *base)
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
        if (!rows_are_aligned(add, i, base[i]) || !(side_by_side || (i < 2 && row_stride(layout, i) == 0)) ||
            (dtype != add->sum && !convert_for(dtype, add->sum)))
            return false;
    }
    return true;
}

/* Returns the n elements of a row from p on, converted and repeated for the loop: p itself or the operand's buffer. */
static const void *
row_for_loop(struct row_operand *operand, const char *p, size_t n, size_t itemsize)
{
    switch (operand->reading) {
    case READ_IN_PLACE:
        return p;
    case READ_CONVERTED:
        operand->convert(p, operand->buffer, n);
        return operand->buffer;
    case READ_REPEATED:
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
    const bool swapped = operand[0].reading == READ_REPEATED && job->commutes;
    if (operand[swapped].reading == READ_IN_PLACE && operand[!swapped].reading == READ_REPEATED) {
        const void *one =
            row_for_loop(&operand[!swapped], swapped ? a : b, REPEATED_BYTES / job->itemsize, job->itemsize);
        job->loops.with_one(swapped ? b : a, one, c, n * job->components);
        return;
    }
    const bool whole = operand[0].reading == READ_IN_PLACE && operand[1].reading == READ_IN_PLACE;
    const size_t most = whole ? n : PIECE / job->itemsize;
    for (size_t done = 0; done < n;) {
        const size_t m = n - done < most ? n - done : most;
        const void *x = row_for_loop(&operand[0], a + (ptrdiff_t)done * operand[0].stride, m, job->itemsize);
        const void *y = row_for_loop(&operand[1], b + (ptrdiff_t)done * operand[1].stride, m, job->itemsize);
        job->loops.arrays(x, y, c + done * job->itemsize, m * job->components);
        done += m;
    }
}

static struct row_operand
row_operand_of(const struct strided *add, int operand, char *buffer)
{
    const ptrdiff_t stride = row_stride(&add->layout, operand);
    const bool same = add->dtype[operand] == add->sum;
    return (struct row_operand){.reading = stride == 0 ? READ_REPEATED
                                           : same      ? READ_IN_PLACE
                                                       : READ_CONVERTED,
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
first_element(const struct strided *add, int operand, const void *data)
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
    struct job job = {.strided = add,
                      .base = {first_element(add, 0, plan->a), first_element(add, 1, plan->b),
                               (const char *)plan->c + add->layout.offset[LAYOUT_SUM]},
                      .loops = {.arrays = host_loop(schedule, dtype->component, schedule->streaming),
                                .with_one = host_loop_with_one(schedule, dtype->component)},
                      .itemsize = dtype->itemsize,
                      .components = dtype->components,
                      .commutes = dtype->component != COMPONENT_E4M3FN};
    return threads_run(schedule, plan->n, add_elements, &job, schedule->fallback);
}
