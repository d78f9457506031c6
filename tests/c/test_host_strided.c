/* Additions row by row, against an element-by-element walk: random shapes, strides, repeats and conversions. */
#include <stdint.h>
#include <string.h>

#include "base/layout.h"
#include "host/add.h"
#include "host/strided.h"
#include "tests.h"

enum { DIMENSIONS = 4, BYTES = 1 << 20, CASES = 400 };

static uint64_t state = 1;

static size_t
below(size_t limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % limit;
}

/* The operand's memory, with room for any case on both sides of its middle. */
struct memory {
    _Alignas(64) char bytes[2 * BYTES];
};

static struct memory a, b, c, expected;

struct call {
    int ndim;
    ssize_t shape[DIMENSIONS];
    ssize_t strides[LAYOUT_OPERANDS][DIMENSIONS];
};

static void
lay_out(struct call *call, int operand, size_t itemsize)
{
    ssize_t step = (ssize_t)itemsize;
    for (int i = call->ndim; i-- > 0;) {
        const bool repeated = operand < 2 && below(4) == 0;
        const bool backwards = i + 1 < call->ndim && below(4) == 0;
        call->strides[operand][i] = repeated ? 0 : backwards ? -step : step;
        step *= call->shape[i] + (i + 1 < call->ndim && below(3) == 0);
    }
}

static void
turn_rows_around(struct call *call)
{
    for (int k = 0; k < LAYOUT_OPERANDS; k++)
        call->strides[k][call->ndim - 1] *= -1;
}

static void
walk_through(struct strided *rows, int ndim, const ssize_t *shape, ssize_t strides[LAYOUT_OPERANDS][DIMENSIONS])
{
    struct layout_view views[LAYOUT_OPERANDS];
    for (int k = 0; k < LAYOUT_OPERANDS; k++)
        views[k] = (struct layout_view){.ndim = ndim, .shape = shape, .strides = strides[k]};
    layout_make(&rows->layout, ndim, shape, views);
}

/* Offsets of element `number` in C order. */
static void
walk(const struct call *call, size_t number, ssize_t offset[3])
{
    memset(offset, 0, 3 * sizeof *offset);
    for (int i = call->ndim; i-- > 0;) {
        const ssize_t index = (ssize_t)(number % (size_t)call->shape[i]);
        number /= (size_t)call->shape[i];
        for (int k = 0; k < 3; k++)
            offset[k] += index * call->strides[k][i];
    }
}

static const struct {
    enum dtype from[2], to;
} dtypes[] = {
    {{DTYPE_INT32, DTYPE_INT32}, DTYPE_INT32},
    {{DTYPE_INT16, DTYPE_INT32}, DTYPE_INT32},
    {{DTYPE_UINT8, DTYPE_INT8}, DTYPE_INT16},
    {{DTYPE_INT8, DTYPE_INT8}, DTYPE_INT8},
    {{DTYPE_INT64, DTYPE_BOOL}, DTYPE_INT64},
    {{DTYPE_COMPLEX64, DTYPE_FLOAT32}, DTYPE_COMPLEX64},
    {{DTYPE_FLOAT64, DTYPE_COMPLEX64}, DTYPE_COMPLEX128},
};

/* One element of the sum, through a conversion and an addition of one element. */
static void
add_one(const struct strided *rows, const char *x, const char *y, char *to)
{
    _Alignas(16) char p[16], q[16];
    const struct dtype_row *dtype = &dtype_table[rows->sum];
    const char *const from[] = {x, y};
    char *const side[] = {p, q};
    for (int k = 0; k < 2; k++)
        if (rows->dtype[k] == rows->sum)
            memcpy(side[k], from[k], dtype->itemsize);
        else
            convert_for(rows->dtype[k], rows->sum)(from[k], side[k], 1);
    host_simd_c.add[dtype->component](p, q, to, dtype->components);
}

TEST(random_rows_are_added_as_element_by_element)
{
    int taken = 0;
    for (int i = 0; i < BYTES / 2; i++) /* small numbers, whatever they are read as: no NaN, no two ways to round */
        ((uint32_t *)(void *)a.bytes)[i] = ((uint32_t *)(void *)b.bytes)[i] = (uint32_t)below(2);
    for (int number = 0; number < CASES; number++) {
        struct call call = {.ndim = 1 + (int)below(DIMENSIONS)};
        for (int i = 0; i < call.ndim; i++)
            call.shape[i] = i + 1 < call.ndim ? 1 + (ssize_t)below(5) : 1 + (ssize_t)below(700);
        const size_t which = below(sizeof dtypes / sizeof *dtypes);
        struct strided rows = {.dtype = {dtypes[which].from[0], dtypes[which].from[1], dtypes[which].to},
                               .sum = dtypes[which].to};
        for (int k = 0; k < 3; k++)
            lay_out(&call, k, dtype_table[rows.dtype[k]].itemsize);
        if (below(4) == 0)
            turn_rows_around(&call);
        walk_through(&rows, call.ndim, call.shape, call.strides);

        const char *x = a.bytes + BYTES, *y = b.bytes + BYTES;
        char *z = c.bytes + BYTES;
        if (!host_strided_possible(&rows, x, y, z))
            continue;
        taken++;
        struct plan plan = {.strided = &rows, .a = x, .b = y, .c = z, .n = layout_size(&rows.layout)};
        struct host_request request = host_strided_request(&plan);
        request.threads = 1 + (int)below(3);
        request.stores = below(2) ? STORES_ORDINARY : STORES_STREAMING;
        request.block = (1 + below(3000)) * dtype_table[rows.sum].itemsize;
        struct status status;
        CHECK(host_schedule(&plan.schedule, &request, &status) == 0, "%s", status.text);

        memset(c.bytes, 0xab, sizeof c.bytes);
        memset(expected.bytes, 0xab, sizeof expected.bytes);
        size_t n = 1;
        for (int i = 0; i < call.ndim; i++)
            n *= (size_t)call.shape[i];
        for (size_t i = 0; i < n; i++) {
            ssize_t offset[3];
            walk(&call, i, offset);
            add_one(&rows, x + offset[0], y + offset[1], expected.bytes + BYTES + offset[2]);
        }
        host_strided_add(&plan);
        CHECK(memcmp(c.bytes, expected.bytes, sizeof expected.bytes) == 0, "case %d", number);
    }
    CHECK(taken > CASES / 4, "only %d of %d cases", taken, CASES);
}

static struct strided
rows_of(size_t rows, size_t columns, ptrdiff_t step, ptrdiff_t step_of_c)
{
    ssize_t shape[] = {(ssize_t)rows, (ssize_t)columns};
    ssize_t strides[LAYOUT_OPERANDS][DIMENSIONS] = {{step, 4}, {step, 4}, {step_of_c, 4}};
    struct strided call = {.dtype = {DTYPE_FLOAT32, DTYPE_FLOAT32, DTYPE_FLOAT32}, .sum = DTYPE_FLOAT32};
    walk_through(&call, 2, shape, strides);
    return call;
}

TEST(what_would_be_slow_or_wrong_is_left_alone)
{
    const char *at = a.bytes;
    const struct strided good = rows_of(10, 100, 400, 404);
    CHECK(host_strided_possible(&good, at, at, at));
    CHECK(host_strided_possible(&good, at, at, NULL));
    CHECK(!host_strided_possible(&good, at + 1, at, at), "misaligned");
    CHECK(!host_strided_possible(&good, at, at, at + 2), "misaligned");
    const struct strided odd = rows_of(10, 100, 401, 400), twice = rows_of(10, 100, 400, 396),
                         repeated = rows_of(10, 100, 400, 0), brief = rows_of(10, 31, 400, 404);
    CHECK(!host_strided_possible(&odd, at, at, at), "every other row misaligned");
    CHECK(!host_strided_possible(&twice, at, at, at), "rows of the sum overlap");
    CHECK(!host_strided_possible(&repeated, at, at, at), "rows of the sum are one");
    CHECK(!host_strided_possible(&brief, at, at, at), "short rows");
    struct strided half = good;
    half.dtype[0] = DTYPE_FLOAT16;
    CHECK(!host_strided_possible(&half, at, at, at), "no conversion");
    struct strided other = good;
    other.dtype[LAYOUT_SUM] = DTYPE_FLOAT64;
    CHECK(!host_strided_possible(&other, at, at, at), "out of another dtype than the sum");
}

static struct host_request
asked(const struct strided *add)
{
    const struct plan plan = {.strided = add};
    return host_strided_request(&plan);
}

TEST(rows_shorter_than_a_piece_are_not_streamed)
{
    const struct strided wide = rows_of(10, 1 << 24, 1 << 27, 1 << 27), narrow = rows_of(1 << 22, 40, 400, 400);
    CHECK(!asked(&wide).short_rows);
    CHECK(asked(&narrow).short_rows);
}
