"""Which kernel adds operands of which layout, and which form of the strided kernel; each gives numpy.add's sum."""

from itertools import product

import numpy as np
import pytest
from arrays import BFLOAT16, DTYPES, assert_same_values, values
from device_layouts import form, kernel, memory_of, numbered, values_alone

import vecadd


@pytest.fixture(autouse=True)
def silent():
    with values_alone():
        yield


# What is one run of memory for all operands must not fall back

SAME_RUN = {
    "C order": lambda x: x,
    "Fortran order": lambda x: x.T,
    "axes permuted": lambda x: x.transpose(1, 2, 0),
    "backwards": lambda x: x[::-1, ::-1, ::-1],
    "one axis backwards": lambda x: x[:, ::-1],
    "permuted and backwards": lambda x: x.transpose(2, 0, 1)[::-1],
    "an axis of one element with any stride": lambda x: x[2:3],
    "a run of rows": lambda x: x[1:3],
    "one element": lambda x: x[1:2, 2:3, 3:4],
    "no dimension": lambda x: x[1:2, 2:3, 3:].reshape(-1)[:1].reshape(()),
}


@pytest.mark.parametrize("how", SAME_RUN)
@pytest.mark.parametrize("dtype", ["f4", "i1", "c16"])
def test_operands_that_run_alike_through_memory_go_to_the_tuned_kernel(driver, how, dtype):
    memories = [memory_of(driver, numbered((4, 5, 6), dtype)) for _ in range(3)]
    a, b, out = (np.asarray(SAME_RUN[how](memory.host)) for memory in memories)
    on_device = [memory.on_device(view) for memory, view in zip(memories, (a, b, out), strict=True)]
    assert kernel(*on_device) == "contiguous"
    vecadd.add(*on_device)
    assert_same_values(on_device[2].numpy(), np.asarray(a + b))


OTHER_RUNS = {
    "a gap": lambda x, y: (x[:, :, ::2], y[:, :, ::2]),
    "rows of a wider array": lambda x, y: (x[:, :, 1:], y[:, :, 1:]),
    "transposed against C order": lambda x, y: (x[:, :4, :4].T, y[:, :4, :4]),
    "backwards against forwards": lambda x, y: (x[::-1], y),
    "a row": lambda x, y: (x, y[0, 0]),
    "a column": lambda x, y: (x, y[:, :, :1]),
    "another dtype": lambda x, y: (x, y.view("i4")),
    "misaligned": lambda x, y: (x, y.reshape(-1).view("u1")[1:-3].view("f4")[:1]),
}


@pytest.mark.parametrize("how", OTHER_RUNS)
def test_all_else_goes_to_the_strided_kernel(driver, how):
    x, y = numbered((4, 5, 6)), numbered((4, 5, 6))
    memories = memory_of(driver, x), memory_of(driver, y)
    a, b = (memory.on_device(view) for memory, view in zip(memories, OTHER_RUNS[how](x, y), strict=True))
    assert kernel(a, b) == "strided"
    assert_same_values(vecadd.add(a, b).numpy(), np.add(a.numpy(), b.numpy()))


# Which form of the strided kernel

TURNED = {
    "a.T + b": lambda x, y: (x.T, y),
    "a + b.T": lambda x, y: (x.T.copy(), y.T.copy().T),
    "a.T + row": lambda x, y: (x.T, y[0]),
    "a.T + column": lambda x, y: (x.T, y[:, :1]),
    "outer axes": lambda x, y: (
        x.reshape(2, -1, x.shape[1]).transpose(0, 2, 1),
        y.reshape(y.shape[0], 2, -1).transpose(1, 0, 2).copy(),
    ),
    "from an element on": lambda x, y: (x[1:, 1:].T, y[1:, 1:]),
    "every second of the outer axis": lambda x, y: (x[::2].T, y[:, : x.shape[0] // 2]),
}


@pytest.mark.parametrize("how", TURNED)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_an_operand_along_another_axis_is_added_by_tiles(driver, how, dtype):
    for extents in ((66, 64), (130, 200)):
        x, y = values(dtype, extents[0] * extents[1], 1), values(dtype, extents[0] * extents[1], 2)
        x, y = x.reshape(extents), y.reshape(extents[::-1])
        a, b = TURNED[how](x, y)
        hosts = [operand if operand.base is None else operand.base for operand in (a, b)]
        memories = [memory_of(driver, np.asarray(host)) for host in hosts]
        left, right = (memory.on_device(view) for memory, view in zip(memories, (a, b), strict=True))
        want = np.add(a, b)
        out = vecadd.to_device(np.zeros(want.shape, want.dtype))
        assert form(left, right, out) == "tiles"
        assert_same_values(vecadd.add(left, right, out).numpy(), want)


@pytest.mark.parametrize("turned", [lambda x: (x, 2), lambda x: (2, x)], ids=["first", "second"])
def test_tiles_turn_over_either_operand_and_leave_numbers_as_they_are(driver, turned):
    host = numbered((70, 90))
    on_device = memory_of(driver, host).on_device(host.T)
    out = vecadd.to_device(np.zeros((90, 70), "f4"))
    assert form(*turned(on_device), out) == "tiles"
    assert_same_values(vecadd.add(*turned(on_device), out).numpy(), np.add(*turned(host.T)))


def test_two_operands_along_another_axis_than_out_are_added_one_by_one(driver):
    host = numbered((70, 90))
    on_device = memory_of(driver, host).on_device(host.T)
    out = vecadd.to_device(np.zeros((90, 70), "f4"))
    assert form(on_device, on_device, out) == "same_dtype"
    assert_same_values(vecadd.add(on_device, on_device, out).numpy(), host.T + host.T)


MIXED = [("c8", "f4"), ("c8", "i2"), ("i4", "i1"), ("i4", "?"), ("u4", "u2"), ("i8", "i4"), ("u8", "?"), ("f4", "f2"),
         ("f4", "u1"), ("f8", "f4"), ("f8", "i8"), ("f4", BFLOAT16), ("i4", "f4"), ("u2", "f4"), ("i8", "u4"),
         ("u4", "i4")]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), MIXED, ids=str)
def test_two_dtypes_are_added_in_vectors(driver, a, b):
    x, y = values(np.dtype(a), 3 * 160, 1).reshape(3, 160), values(np.dtype(b), 3 * 160, 2).reshape(3, 160)
    left, right = memory_of(driver, x), memory_of(driver, y)
    cuts = [(x[:, :n], second) for n in (160, 68) for second in (y[:, :n], y[0, :n], y[:, :1])]
    for p, q in [*cuts, *((x[1, :n], y[2, :n]) for n in range(64, 68))]:
        for one, other in ((left.on_device(p), right.on_device(q)), (right.on_device(q), left.on_device(p))):
            assert form(one, other) == "mixed"
            assert_same_values(vecadd.add(one, other).numpy(), np.add(p, q))


GENERAL = {
    "a misaligned operand": lambda x, y: (x[:3], y.reshape(-1).view("u1")[1:73].view("f4").reshape(3, 6)),
    "two dtypes one by one": lambda x, y: (x[:, ::2], y.view("i4")[:, ::2]),
    "sums of 2 bytes": lambda x, y: (x.view("i2"), y.view("i1")[:, :12]),
}


@pytest.mark.parametrize("how", GENERAL)
def test_the_general_kernel_adds_what_no_other_form_takes(driver, how):
    x, y = numbered((4, 6)), numbered((4, 6))
    a, b = GENERAL[how](x, y)
    left, right = memory_of(driver, x).on_device(a), memory_of(driver, y).on_device(b)
    assert form(left, right) == "general"
    assert_same_values(vecadd.add(left, right).numpy(), np.add(a, b))


def test_gathered_neighbours_carry_over_every_axis(driver):
    for shape, dtype in product([(5, 3), (7, 2, 3), (3, 2, 2, 3), (2, 3, 5, 2, 2)], DTYPES):
        x, y = values(dtype, 2 * int(np.prod(shape)), 1).reshape(2 * shape[0], *shape[1:]), values(dtype, shape[-1], 2)
        memory, row = memory_of(driver, x), memory_of(driver, y)
        for a in (x[: shape[0]], x[::2], x[::-2]):
            assert form(memory.on_device(a), row.on_device(y)) == "same_dtype"
            assert_same_values(vecadd.add(memory.on_device(a), row.on_device(y)).numpy(), np.add(a, y))


def test_rows_longer_than_a_vector_run_with_tails_of_every_length(driver):
    for columns, dtype in product((63, 64, 65, 66, 67, 129), (np.dtype("f4"), np.dtype("i1"), np.dtype("c8"))):
        x, row = values(dtype, 3 * 160, 1).reshape(3, 160), values(dtype, 160, 2)
        memory, other = memory_of(driver, x), memory_of(driver, row)
        a, b = x[:, :columns], row[:columns]
        got = vecadd.add(memory.on_device(a), other.on_device(b))
        assert_same_values(got.numpy(), np.add(a, b))
