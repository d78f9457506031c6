/* sum_order.h: the strides of a new sum, as NumPy and PyTorch give them to theirs. */
#include "base/addition.h"
#include "tests.h"

enum { MAX_AXES = 4 };

/* Strides are in elements; those of an operand that is broadcast are given where it has an extent of 1. */
struct expected {
    const char *what;
    enum order_rule rule;
    int ndim;
    ssize_t shape[MAX_AXES], a[MAX_AXES], b[MAX_AXES], sum[MAX_AXES];
};

static const struct expected table[] = {
    {"both turned", ORDER_NUMPY, 2, {3, 4}, {1, 3}, {1, 3}, {1, 3}},
    {"both turned", ORDER_TORCH, 2, {3, 4}, {1, 3}, {1, 3}, {1, 3}},
    {"both turned", ORDER_C, 2, {3, 4}, {1, 3}, {1, 3}, {4, 1}},
    {"C order wins", ORDER_NUMPY, 2, {3, 4}, {1, 3}, {4, 1}, {4, 1}},
    {"the first one decides", ORDER_TORCH, 2, {3, 4}, {1, 3}, {4, 1}, {1, 3}},
    {"the first one decides", ORDER_TORCH, 2, {3, 4}, {4, 1}, {1, 3}, {4, 1}},
    {"a row says nothing", ORDER_TORCH, 2, {3, 4}, {0, 1}, {1, 3}, {1, 3}},
    {"a row says nothing", ORDER_NUMPY, 2, {3, 4}, {0, 1}, {1, 3}, {1, 3}},
    {"gaps are closed", ORDER_NUMPY, 2, {3, 4}, {2, 12}, {0, 0}, {1, 3}},
    {"backwards is forwards", ORDER_NUMPY, 2, {3, 4}, {-1, -3}, {0, 0}, {1, 3}},
    {"channels last", ORDER_TORCH, 4, {2, 3, 5, 7}, {105, 1, 21, 3}, {105, 1, 21, 3}, {105, 1, 21, 3}},
    {"channels last", ORDER_NUMPY, 4, {2, 3, 5, 7}, {105, 1, 21, 3}, {0, 0, 0, 0}, {105, 1, 21, 3}},
    {"equal strides: the longer axis outside", ORDER_TORCH, 2, {3, 4}, {1, 1}, {0, 0}, {1, 3}},
    {"equal strides: C order", ORDER_NUMPY, 2, {3, 4}, {1, 1}, {0, 0}, {4, 1}},
    {"equal strides: C order, whatever the other has", ORDER_NUMPY, 2, {3, 4}, {1, 1}, {1, 3}, {4, 1}},
    {"equal strides and extents: the other decides", ORDER_TORCH, 2, {3, 3}, {1, 1}, {3, 1}, {3, 1}},
    {"equal strides and extents: the other decides", ORDER_TORCH, 2, {3, 3}, {1, 1}, {1, 3}, {1, 3}},
    {"axes past one that says nothing", ORDER_TORCH, 3, {3, 5, 4}, {1, 0, 3}, {0, 1, 0}, {1, 3, 15}},
    {"axes past one that says nothing", ORDER_NUMPY, 3, {3, 5, 4}, {1, 0, 3}, {0, 1, 0}, {1, 12, 3}},
};

/* An operand's view: extents of 1 where its stride is 0. */
static struct layout_view
view_of(const struct expected *expected, const ssize_t *strides, ssize_t *shape, ssize_t *bytes)
{
    for (int i = 0; i < expected->ndim; i++) {
        shape[i] = strides[i] == 0 ? 1 : expected->shape[i];
        bytes[i] = 8 * strides[i];
    }
    return (struct layout_view){expected->ndim, shape, bytes, 8};
}

TEST(sums_have_the_rules_order)
{
    for (size_t row = 0; row < sizeof table / sizeof *table; row++) {
        const struct expected *expected = &table[row];
        ssize_t shape[LAYOUT_SUM][MAX_AXES], bytes[LAYOUT_SUM][MAX_AXES], strides[MAX_AXES], c_order = 4;
        const struct layout_view views[] = {view_of(expected, expected->a, shape[0], bytes[0]),
                                            view_of(expected, expected->b, shape[1], bytes[1])};
        const bool differs = output_order(expected->rule, expected->ndim, expected->shape, views, 4, strides);
        bool in_c_order = true;
        for (int i = expected->ndim; i-- > 0; c_order *= expected->shape[i]) {
            CHECK(strides[i] == 4 * expected->sum[i], "%s, row %zu, axis %d: %zd", expected->what, row, i, strides[i]);
            in_c_order &= strides[i] == c_order;
        }
        CHECK(differs == !in_c_order, "%s, row %zu", expected->what, row);
    }
}

TEST(operands_without_strides_are_in_c_order)
{
    static const ssize_t shape[] = {2, 3, 4}, row[] = {4};
    const struct layout_view views[] = {{3, shape, NULL, 8}, {1, row, NULL, 8}};
    static const enum order_rule rules[] = {ORDER_C, ORDER_NUMPY, ORDER_TORCH};
    ssize_t strides[3];
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        CHECK(!output_order(rules[i], 3, shape, views, 8, strides));
        CHECK(strides[0] == 96 && strides[1] == 32 && strides[2] == 8);
    }
}
