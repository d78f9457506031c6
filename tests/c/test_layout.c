/* layout.h: random layouts of three operands beside an odometer that goes through every element as the shape has it. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/layout.h"
#include "tests.h"

enum { CASES = 20000, MAX_AXES = 5, MAX_ELEMENTS = 4096 };

/* The offsets of one element of each operand, in bytes from their first elements. */
struct element {
    ssize_t at[LAYOUT_OPERANDS];
};

static unsigned
below(unsigned limit)
{
    return (unsigned)rand() % limit;
}

static int
by_the_sum(const void *x, const void *y)
{
    const ssize_t p = ((const struct element *)x)->at[LAYOUT_SUM], q = ((const struct element *)y)->at[LAYOUT_SUM];
    return (p > q) - (p < q);
}

/* Lists the elements of axes in any order: of a shape and its strides, or of a layout. */
static size_t
list_elements(struct element *elements, int ndim, const ssize_t *extent, const ssize_t *const stride[LAYOUT_OPERANDS],
              const ssize_t *offset)
{
    ssize_t index[LAYOUT_DIMENSIONS] = {0};
    for (size_t count = 0;; count++) {
        for (int k = 0; k < LAYOUT_OPERANDS; k++) {
            elements[count].at[k] = offset ? offset[k] : 0;
            for (int i = 0; i < ndim; i++)
                elements[count].at[k] += index[i] * stride[k][i];
        }
        int axis = 0;
        while (axis < ndim && ++index[axis] == extent[axis])
            index[axis++] = 0;
        if (axis == ndim)
            return count + 1;
    }
}

/* An operand whose axes have a random order in memory, backwards and with gaps at random. */
static void
draw_strides(ssize_t *strides, int ndim, const ssize_t *shape, ssize_t itemsize, bool packed)
{
    bool done[MAX_AXES] = {false};
    ssize_t step = itemsize;
    for (int i = 0; i < ndim; i++) {
        int axis = packed && below(4) ? ndim - 1 - i : (int)below((unsigned)ndim);
        while (done[axis])
            axis = (axis + 1) % ndim;
        done[axis] = true;
        step *= packed || below(3) ? 1 : 2;
        strides[axis] = below(4) ? step : -step;
        step *= shape[axis];
    }
}

TEST(a_walk_meets_the_elements_that_the_shape_has)
{
    static struct element expected[MAX_ELEMENTS], met[MAX_ELEMENTS];
    for (int number = 0; number < CASES; number++) {
        const int ndim = (int)below(MAX_AXES + 1);
        const bool packed = below(2);
        ssize_t shape[MAX_AXES], own[LAYOUT_OPERANDS][MAX_AXES], all[LAYOUT_OPERANDS][MAX_AXES];
        ssize_t extents[LAYOUT_OPERANDS][MAX_AXES];
        for (int i = 0; i < ndim; i++)
            shape[i] = 1 + (ssize_t)below(5);
        struct layout_view views[LAYOUT_OPERANDS];
        const ssize_t *strides[LAYOUT_OPERANDS], *walked[LAYOUT_OPERANDS];
        for (int k = 0; k < LAYOUT_OPERANDS; k++) {
            const int missing = k == LAYOUT_SUM || below(3) ? 0 : (int)below((unsigned)ndim + 1);
            for (int i = missing; i < ndim; i++)
                extents[k][i - missing] = k != LAYOUT_SUM && below(5) == 0 ? 1 : shape[i];
            draw_strides(own[k], ndim - missing, extents[k], 1 << k, packed);
            for (int i = 0; i < ndim; i++)
                all[k][i] = i < missing || extents[k][i - missing] == 1 ? 0 : own[k][i - missing];
            views[k] = (struct layout_view){ndim - missing, extents[k], own[k], (size_t)1 << k};
            strides[k] = all[k];
        }
        struct layout layout;
        layout_make(&layout, ndim, shape, views);
        for (int k = 0; k < LAYOUT_OPERANDS; k++)
            walked[k] = layout.stride[k];
        const size_t size = list_elements(expected, ndim, shape, strides, NULL);
        CHECK(layout_size(&layout) == size);
        list_elements(met, layout.ndim, layout.extent, walked, layout.offset);
        for (int i = 0; i < layout.ndim; i++)
            CHECK(layout.extent[i] > 1 && layout.stride[LAYOUT_SUM][i] > 0 &&
                  (i == 0 || layout.stride[LAYOUT_SUM][i] >= layout.stride[LAYOUT_SUM][i - 1]));
        qsort(expected, size, sizeof *expected, by_the_sum);
        qsort(met, size, sizeof *met, by_the_sum);
        CHECK(memcmp(expected, met, size * sizeof *expected) == 0, "case %d", number);
        CHECK(layout_has_internal_overlap(ndim, shape, all[LAYOUT_SUM], 4) == false, "case %d", number);
    }
}

static struct layout
layout_of(int ndim, const ssize_t *shape, const ssize_t *a, const ssize_t *b, const ssize_t *c)
{
    const struct layout_view views[] = {{ndim, shape, a, 4}, {ndim, shape, b, 4}, {ndim, shape, c, 4}};
    struct layout layout;
    layout_make(&layout, ndim, shape, views);
    return layout;
}

TEST(what_is_one_run_becomes_one_axis)
{
    static const ssize_t shape[] = {3, 4, 5}, orders[][3] = {{80, 20, 4}, {4, 12, 48}, {-80, -20, -4}, {20, -60, 4}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        const struct layout layout = layout_of(3, shape, orders[i], orders[i], orders[i]);
        CHECK(layout.ndim == 1 && layout.extent[0] == 60, "order %zu", i);
        for (int k = 0; k < LAYOUT_OPERANDS; k++)
            CHECK(layout_is_dense(&layout, k, 4), "order %zu", i);
    }
    const struct layout other = layout_of(3, shape, orders[0], orders[1], orders[0]);
    CHECK(other.ndim > 1 && !layout_is_dense(&other, 1, 4) && layout_is_dense(&other, 0, 4));
}

TEST(overlap_is_told_by_the_lowest_and_the_highest_address)
{
    static const ssize_t shape[] = {10}, forwards[] = {4}, backwards[] = {-4};
    const struct layout same = layout_of(1, shape, forwards, forwards, forwards);
    const char *memory = (const char *)4096;
    CHECK(!layout_overlaps(&same, 0, memory, 4, memory, 4));
    CHECK(layout_overlaps(&same, 0, memory, 4, memory + 4, 4));
    CHECK(layout_overlaps(&same, 0, memory, 4, memory + 39, 4));
    CHECK(!layout_overlaps(&same, 0, memory, 4, memory + 40, 4));
    CHECK(!layout_overlaps(&same, 0, memory + 40, 4, memory, 4));
    CHECK(layout_overlaps(&same, 0, memory, 2, memory, 4));
    const struct layout against = layout_of(1, shape, backwards, forwards, forwards);
    CHECK(layout_overlaps(&against, 0, memory + 36, 4, memory, 4));
    CHECK(!layout_overlaps(&against, 0, memory + 36, 4, memory + 40, 4));
    CHECK(layout_overlaps(&against, 0, memory + 36, 4, memory - 36, 4));
}

TEST(an_array_that_laps_itself_is_told)
{
    static const struct {
        ssize_t shape[2], strides[2];
        bool laps;
    } cases[] = {
        {{3, 4}, {16, 4}, false}, {{3, 4}, {0, 4}, true},    {{1, 4}, {0, 4}, false},   {{3, 4}, {12, 4}, true},
        {{3, 2}, {8, 12}, true},  {{3, 4}, {-16, 4}, false}, {{3, 4}, {4, -12}, false}, {{3, 4}, {2, 100}, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK(layout_has_internal_overlap(2, cases[i].shape, cases[i].strides, 4) == cases[i].laps, "case %zu", i);
}

TEST(bounds_are_counted_or_refused)
{
    static const ssize_t shape[] = {3, 4}, strides[] = {-100, 8}, far[] = {SSIZE_MAX / 2, 8},
                         least[] = {-SSIZE_MAX - 1, 8};
    ssize_t low;
    size_t bytes;
    CHECK(layout_bounds(2, shape, strides, 4, &low, &bytes) && low == -200 && bytes == 228);
    CHECK(layout_bounds(0, NULL, NULL, 4, &low, &bytes) && low == 0 && bytes == 4);
    CHECK(!layout_bounds(2, shape, far, 4, &low, &bytes));
    CHECK(!layout_bounds(2, shape, least, 4, &low, &bytes));
}

TEST(elements_are_counted_or_the_shape_is_refused)
{
    static const struct {
        ssize_t shape[3];
        size_t itemsize;
        bool fine;
        size_t elements;
    } cases[] = {
        {{3, 4, 5}, 8, true, 60},
        {{3, 0, 5}, 8, true, 0},
        {{1, 1, SSIZE_MAX}, 1, true, SSIZE_MAX},
        {{1, 1, SSIZE_MAX}, 2, false, 0},
        {{1, 1, SSIZE_MAX / 16}, 16, true, SSIZE_MAX / 16},
        {{1, 1, SSIZE_MAX / 16 + 1}, 16, false, 0},
        {{1LL << 32, 1LL << 32, 1}, 1, false, 0}, /* wraps around to 0 */
        {{1LL << 32, 1LL << 32, 0}, 1, false, 0},
        {{0, 1LL << 32, 1LL << 32}, 1, false, 0},
        {{0, 1LL << 32, 1LL << 30}, 1, true, 0},
        {{3, -4, 5}, 1, false, 0},
        {{-3, -4, 5}, 1, false, 0},
        {{0, -4, 5}, 1, false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t elements = 0;
        CHECK(layout_count(3, cases[i].shape, cases[i].itemsize, &elements) == cases[i].fine, "case %zu", i);
        CHECK(elements == cases[i].elements, "case %zu", i);
    }
    size_t one;
    CHECK(layout_count(0, NULL, 16, &one) && one == 1);
}
