"""Host addition: numpy.add's values, dtype, shape, kind and memory order, bit for bit, at every size and alignment."""

import numpy as np
import pytest
from arrays import (
    BFLOAT16,
    DTYPES,
    assert_same,
    assert_same_values,
    at_offset,
    guards_intact,
    numpys_sum,
    offset_empty,
    special_values,
    values,
)
from hypothesis import given
from hypothesis import strategies as st

import vecadd

pytestmark = pytest.mark.usefixtures("silent")

# Bytes: one element, SSE, AVX2 and AVX-512 vectors, two, four and eight of them, pages; each met from both sides.
BLOCKS = [16, 32, 64, 128, 256, 512, 4096, 65536]


def sizes_around_blocks(dtype: np.dtype) -> list[int]:
    near = {block // dtype.itemsize + step for block in BLOCKS for step in (-1, 0, 1)}
    return sorted(near | {0, 1, 2, 3})


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_small_size_is_numpys_sum(dtype):
    for n in range(300):
        a, b = values(dtype, n, 1), values(dtype, n, 2)
        assert_same(vecadd.add(a, b), numpys_sum(a, b))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_alignment_of_every_operand_is_numpys_sum_and_writes_nothing_else(dtype):
    n = 200 // dtype.itemsize + 67
    a, b = values(dtype, n, 1), values(dtype, n, 2)
    want = numpys_sum(a, b)
    for offset in range(64):
        left, right, out = at_offset(a, offset), at_offset(b, 7 * offset % 64), offset_empty(dtype, n, 13 * offset % 64)
        assert_same(vecadd.add(left, right), want)
        vecadd.add(left, right, out)
        assert_same_values(out, want)
        vecadd.add(left, right, left)
        assert_same_values(left, want)
        assert guards_intact(out)
        assert guards_intact(left)


@given(data=st.data(), dtype=st.sampled_from(DTYPES), seed=st.integers(0, 2**32))
def test_any_size_offset_and_out_is_numpys_sum(data, dtype, seed):
    n = data.draw(st.sampled_from(sizes_around_blocks(dtype)) | st.integers(0, 5000), "n")
    offsets = st.integers(0, 63).map(lambda i: i * dtype.itemsize % 64) | st.integers(0, 63)
    a = at_offset(values(dtype, n, seed), data.draw(offsets, "offset of a"))
    b = at_offset(values(dtype, n, seed + 1), data.draw(offsets, "offset of b"))
    out = data.draw(st.sampled_from([None, a, b]) | offsets.map(lambda at: offset_empty(dtype, n, at)), "out")
    want = numpys_sum(a, b)
    got = vecadd.add(a, b, out)
    assert out is None or got is out
    assert_same(got, want)
    assert guards_intact(a)
    assert guards_intact(b)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sizes_around_every_block_are_numpys_sum(dtype):
    for n in sizes_around_blocks(dtype):
        a, b, out = values(dtype, n, 3), values(dtype, n, 4), offset_empty(dtype, n, 0)
        vecadd.add(a, b, out)
        assert_same_values(out, numpys_sum(a, b))
        assert guards_intact(out)


@pytest.mark.parametrize("offset", [0, 4, 20, 60])
@pytest.mark.parametrize("step", [-1, 0, 1, 12345])
def test_large_sums_are_numpys_at_every_alignment_of_out(offset, step):
    n = 2**23 + step
    a, b = np.resize(values(np.dtype("float32"), 99991, 1), n), np.resize(values(np.dtype("float32"), 88883, 2), n)
    out = offset_empty(np.dtype("float32"), n, offset)
    vecadd.add(a, b, out)
    assert_same_values(out, numpys_sum(a, b))
    assert guards_intact(out)


@pytest.mark.parametrize("dtype", [np.dtype("float16"), BFLOAT16], ids=str)
def test_every_sixteen_bit_float_is_rounded_once_to_nearest_even(dtype):
    every = np.arange(2**16, dtype=np.uint16).view(dtype)
    for other in [*special_values(dtype), *values(dtype, 40, 9)]:
        b = np.full(2**16, other, dtype)
        assert_same(vecadd.add(every, b), numpys_sum(every, b))


@pytest.mark.parametrize("dtype", [np.dtype("int8"), np.dtype("uint8")], ids=str)
def test_every_pair_of_eight_bit_integers_wraps_around(dtype):
    a = np.arange(2**16).astype(np.uint8).view(dtype)
    b = (np.arange(2**16) >> 8).astype(np.uint8).view(dtype)
    assert_same(vecadd.add(a, b), numpys_sum(a, b))


@pytest.mark.parametrize("n", [1, 15, 64, 1000])
def test_bool_is_logical_or_and_gives_only_0_and_1(n):
    a = np.resize(np.array([0, 1, 2, 3, 255, 0, 128], np.uint8), n)
    b = np.resize(np.array([0, 0, 1, 254, 1], np.uint8), n)
    got = vecadd.add(a.view(bool), b.view(bool))
    assert got.view(np.uint8).tolist() == ((a != 0) | (b != 0)).astype(np.uint8).tolist()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_operand_may_be_added_to_itself_in_place(dtype):
    a = values(dtype, 1003)
    want = numpys_sum(a, a)
    assert vecadd.add(a, a, a) is a
    assert_same_values(a, want)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (0,), (0, 3), (3, 0, 2), (7, 9), (2, 3, 4, 5)], ids=str)
@pytest.mark.parametrize("orders", ["CC", "CF", "FC", "FF"])
def test_shape_kind_and_memory_order_are_numpys(dtype, shape, orders):
    n = int(np.prod(shape))
    a = values(dtype, n, 1).reshape(shape).copy(order=orders[0])
    b = values(dtype, n, 2).reshape(shape).copy(order=orders[1])
    got, want = vecadd.add(a, b), np.add(a, b)
    assert type(got) is type(want)
    assert_same(np.asarray(got), np.asarray(want))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("out_order", ["C", "F"])
def test_out_keeps_its_own_memory_order(order, out_order):
    a = values(np.dtype("float32"), 6 * 35).reshape(6, 35).copy(order=order)
    out = np.empty((6, 35), np.float32, order=out_order)
    assert vecadd.add(a, a, out) is out
    assert_same_values(out, numpys_sum(a, a))


@pytest.mark.parametrize("n", [0, 1, 1000, 2**20])
def test_new_result_is_the_callers_own_memory(n):
    a = np.ones(n, np.float32)
    got = vecadd.add(a, a)
    assert got.flags.owndata
    assert got.flags.writeable
    assert got.flags.aligned
    assert got.base is None
    assert not np.shares_memory(got, a)


@pytest.mark.parametrize("shift", [-3, -1, 1, 3, 64])
@pytest.mark.parametrize("n", [5, 1000, 2**20])
def test_out_that_overlaps_an_operand_in_part_gets_the_sum_of_what_was_there(shift, n):
    memory = np.arange(n + 200, dtype=np.float32)
    a, out = memory[100 : 100 + n], memory[100 + shift : 100 + shift + n]
    b = np.arange(n, dtype=np.float32)
    want = a + b
    vecadd.add(a, b, out)
    assert_same_values(out, want)
