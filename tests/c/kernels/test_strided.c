/* strided.cu: a sum too large for one launch is cut along any of its axes, into pieces that together are the whole. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/kernels.h"
#include "operands.h"
#include "tests.h"

enum { MAX_AXES = 4, ROOM = 1 << 20 };

/* An array of uint8 or uint32 in C order, of which every axis but the outermost has some elements more than the sum. */
struct view {
    ssize_t strides[MAX_AXES];
    size_t elements;
};

static struct view
view_of(int ndim, const ssize_t *shape, const ssize_t *margin, size_t itemsize)
{
    struct view view;
    ssize_t step = (ssize_t)itemsize;
    for (int i = ndim; i-- > 0;) {
        view.strides[i] = step;
        step *= shape[i] + margin[i];
    }
    view.elements = (size_t)step / itemsize;
    return view;
}

static unsigned
element(const unsigned char *from, size_t itemsize)
{
    unsigned value = 0;
    memcpy(&value, from, itemsize);
    return value;
}

/* Adds two views of larger arrays in pieces of `most` elements, and looks at each byte of the third array. `turned`: b
 * is of the shape's axes in the opposite order, and runs along another axis than the sum. */
static void
check_pieces(struct memory *m, int ndim, const ssize_t *shape, enum dtype dtype, bool turned, size_t most)
{
    static const ssize_t none[MAX_AXES] = {0}, some[MAX_AXES] = {0, 1, 1, 3};
    const size_t itemsize = dtype_table[dtype].itemsize;
    const struct view a = view_of(ndim, shape, some, itemsize),
                      c = view_of(ndim, shape, turned ? none : some, itemsize);
    struct view b = view_of(ndim, shape, none, itemsize);
    if (turned) {
        ssize_t backwards[MAX_AXES];
        for (int i = 0; i < ndim; i++)
            backwards[i] = shape[ndim - 1 - i];
        const struct view other = view_of(ndim, backwards, none, itemsize);
        for (int i = 0; i < ndim; i++)
            b.strides[i] = other.strides[ndim - 1 - i];
    }
    for (size_t i = 0; i < a.elements * itemsize; i++)
        m->a[i] = (unsigned char)(i * 7 + i / 251);
    for (size_t i = 0; i < b.elements * itemsize; i++)
        m->b[i] = (unsigned char)(i * 11 + i / 241);
    memset(m->c, CANARY, c.elements * itemsize + MARGIN);
    memset(m->expected, CANARY, c.elements * itemsize + MARGIN);

    struct strided add = {.dtype = {dtype, dtype, dtype}, .sum = dtype};
    const struct layout_view views[] = {
        {ndim, shape, a.strides, itemsize}, {ndim, shape, b.strides, itemsize}, {ndim, shape, c.strides, itemsize}};
    layout_make(&add.layout, ndim, shape, views);
    size_t n = 1;
    for (int i = 0; i < ndim; i++)
        n *= (size_t)shape[i];
    for (size_t number = 0; number < n; number++) {
        size_t left = number, at[] = {0, 0, 0};
        for (int i = ndim; i-- > 0; left /= (size_t)shape[i])
            for (int k = 0; k < LAYOUT_OPERANDS; k++)
                at[k] += left % (size_t)shape[i] * (size_t)views[k].strides[i];
        const unsigned sum = element(m->a + at[0], itemsize) + element(m->b + at[1], itemsize);
        memcpy(m->expected + at[LAYOUT_SUM], &sum, itemsize);
    }

    CHECK(strided_launch_pieces(&add, m->a, m->b, m->c, most, NULL) == cudaSuccess);
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
    CHECK(memcmp(m->c, m->expected, c.elements * itemsize + MARGIN) == 0, "%s, %d axes, pieces of %zu, turned: %d",
          dtype_table[dtype].name, ndim, most, turned);
}

TEST(a_sum_is_cut_along_its_outer_axes_and_then_along_inner_ones)
{
    static const ssize_t shapes[][MAX_AXES] = {{37}, {2, 37}, {37, 2}, {2, 3, 67}, {3, 37, 40}, {5, 2, 3, 33}};
    static const int axes[] = {1, 2, 2, 3, 3, 4};
    static const enum dtype dtypes[] = {DTYPE_UINT8, DTYPE_UINT32};
    struct memory m = memory_open(ROOM);
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        size_t n = 1;
        for (int axis = 0; axis < axes[i]; axis++)
            n *= (size_t)shapes[i][axis];
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
            for (size_t most = n; most > 0; most = most > 40 ? most - most / 7 : most - 1)
                for (int turned = 0; turned < 2; turned++)
                    check_pieces(&m, axes[i], shapes[i], dtypes[d], turned, most);
    }
    memory_close(&m);
}

/* Where few large axes are cut, both parts begin at a multiple of 4096, so that they have the whole's alignment. */
TEST(a_long_axis_is_cut_at_a_multiple_of_4096)
{
    static const ssize_t one[] = {20000}, outer[] = {2, 9001}, inner[] = {9001, 2};
    struct memory m = memory_open(ROOM);
    for (size_t most = 3000; most < 20000; most += 1013)
        for (int turned = 0; turned < 2; turned++) {
            check_pieces(&m, 1, one, DTYPE_UINT32, turned, most);
            check_pieces(&m, 2, outer, DTYPE_UINT8, turned, most);
            check_pieces(&m, 2, inner, DTYPE_UINT8, turned, most);
        }
    memory_close(&m);
}
