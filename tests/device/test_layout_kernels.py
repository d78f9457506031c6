"""Which kernel adds operands of which layout, and which form of the strided kernel; each gives numpy.add's sum."""

from itertools import product

import numpy as np
import pytest
from arrays import BFLOAT16, DTYPES, FLOAT8, assert_same_values, values
from device_layouts import form, kernel, memory_of, numbered

import vecadd

pytestmark = pytest.mark.usefixtures("values_alone")


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
    "a.T + b.T": lambda x, y: (x.T, y.T.copy().T),
    "a.T + row": lambda x, y: (x.T, y[0]),
    "a.T + column": lambda x, y: (x.T, y[:, :1]),
    "outer axes": lambda x, y: (
        x.reshape(2, -1, x.shape[1]).transpose(0, 2, 1),
        y.reshape(y.shape[0], 2, -1).transpose(1, 0, 2).copy(),
    ),
    "from a row on": lambda x, y: (x[16:].T, y[:, 16:].copy()),
    "every second of the outer axis": lambda x, y: (x[::2].T, y[:, : x.shape[0] // 2].copy()),
}


def added(driver, a, b):
    """The form that adds these views into a new array in C order; its sum is compared with NumPy's."""
    hosts = [operand if operand.base is None else operand.base for operand in (a, b)]
    memories = [memory_of(driver, np.asarray(host)) for host in hosts]
    left, right = (memory.on_device(view) for memory, view in zip(memories, (a, b), strict=True))
    want = np.add(a, b)
    out = vecadd.to_device(np.zeros(want.shape, want.dtype))
    assert_same_values(vecadd.add(left, right, out).numpy(), want)
    return form(left, right, out)


def matrix(dtype, rows, columns, seed):
    return values(np.dtype(dtype), rows * columns, seed).reshape(rows, columns)


def turned(how, dtype, rows, columns):
    return TURNED[how](matrix(dtype, rows, columns, 1), matrix(dtype, columns, rows, 2))


@pytest.mark.parametrize("how", TURNED)
def test_inputs_along_another_axis_are_added_by_tiles_of_vectors(driver, how):
    assert added(driver, *turned(how, "f4", 576, 576)) == "tiles"
    assert added(driver, *turned(how, "f4", 128, 128)) == "turned"  # too few for a block on most multiprocessors


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tiles_of_vectors_add_every_dtype(driver, dtype):
    edge = 96 * min(8, 16 // dtype.itemsize)
    assert added(driver, *turned("a.T + b", dtype, edge + 8, edge)) == "tiles"
    assert added(driver, *turned("a.T + b.T", dtype, edge, edge + 8)) == "tiles"


@pytest.mark.parametrize("how", TURNED)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tiles_of_elements_add_at_any_alignment(driver, how, dtype):
    assert added(driver, *turned(how, dtype, 66, 63)) == "turned"


@pytest.mark.parametrize("turned", [lambda x: (x, 2), lambda x: (2, x)], ids=["first", "second"])
def test_tiles_turn_over_either_operand_and_leave_numbers_as_they_are(driver, turned):
    for edge, expected in ((90, "turned"), (400, "tiles")):
        host = numbered((edge, edge))
        on_device = memory_of(driver, host).on_device(host.T)
        out = vecadd.to_device(np.zeros((edge, edge), "f4"))
        assert form(*turned(on_device), out) == expected
        assert_same_values(vecadd.add(*turned(on_device), out).numpy(), np.add(*turned(host.T)))


@pytest.mark.parametrize("dtype", ["i1", "f2", "f4", "c8"])
def test_few_channels_among_planes_are_added_by_tiles_as_narrow_as_they_are(driver, dtype):
    for channels in (3, 4, 6, 8, 9):
        planes = matrix(dtype, 2 * channels, 23 * 17, 1).reshape(2, channels, 23, 17)
        last = matrix(dtype, 2 * 23 * 17, channels, 2).reshape(2, 23, 17, channels).transpose(0, 3, 1, 2)
        assert added(driver, planes, last) == added(driver, last, planes) == "turned"


def test_inputs_along_two_axes_that_are_not_the_sums_are_added_one_by_one(driver):
    x, y = numbered((24, 20, 28)), numbered((28, 24, 20))
    assert added(driver, x.transpose(2, 1, 0), y.transpose(0, 2, 1)) == "same_dtype"


def test_small_matrices_do_not_fill_tiles(driver):
    x, y = numbered((40, 8, 8)), numbered((40, 8, 8))
    assert added(driver, x.transpose(0, 2, 1), y) == "same_dtype"


def test_more_axes_than_the_forms_know_go_to_the_general_kernel(driver):
    for axes, expected in ((16, "same_dtype"), (17, "general")):
        x, y = numbered((2,) * axes, "i1"), numbered((2,) * axes, "i1")
        assert added(driver, x.T, y) == expected


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_number_and_contiguous_arrays_have_a_form_of_their_own(driver, dtype):
    for n in (1, 15, 16, 17, 4099):
        host = values(dtype, n + 1, 1)
        memory, number = memory_of(driver, host), values(dtype, 1, 2)[0]
        with np.errstate(all="ignore"):
            for x in (host[:n], host[1:]):
                left = memory.on_device(x)
                assert form(left, number) == form(number, left) == "number"
                assert_same_values(vecadd.add(left, number).numpy(), np.add(x, number))
                assert_same_values(vecadd.add(number, left).numpy(), np.add(number, x))


@pytest.mark.parametrize("dtype", [np.dtype("c8"), np.dtype("i1"), FLOAT8], ids=str)
def test_a_number_is_added_to_arrays_at_any_alignment_of_array_and_sum(driver, dtype):
    """Of float8 the order shows, at the edges too: a NaN sum has the sign of a."""
    x, number = values(dtype, 89, 1), np.array([0xFF], "u1").view(dtype)[0] if dtype == FLOAT8 else dtype.type(7)
    if dtype.kind == "c":
        x, number = numbered(89, dtype), dtype.type(5 + 7j)
    for at, out_at in product(range(0, 16, min(dtype.itemsize, 4)), repeat=2):
        memory, sums = (memory_of(driver, np.zeros(1024, "u1")) for _ in range(2))
        view, out = (each.host[start : start + x.nbytes].view(dtype) for each, start in ((memory, at), (sums, out_at)))
        on_device, sum_on_device = memory.on_device(view), sums.on_device(out)
        driver.write(memory.device.pointer + at, x)
        for a, b in ((on_device, number), (number, on_device)):
            assert form(a, b, sum_on_device) == "number"
            vecadd.add(a, b, sum_on_device)
            want = np.add(*(x if each is on_device else each for each in (a, b)))
            assert sum_on_device.numpy().tobytes() == want.tobytes(), (at, out_at, a is number)


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


@pytest.mark.parametrize(("a", "b"), MIXED, ids=str)
def test_two_dtypes_along_another_axis_than_the_sum_are_added_by_tiles(driver, a, b):
    x, y = matrix(a, 36, 33, 1), matrix(b, 36, 33, 2)
    for p, q in ((x.T, y.T.copy()), (x.T.copy(), y.T), (x.T, y.T), (x.T, y[:1, 0])):
        assert added(driver, p, q) == "turned"
        assert added(driver, q, p) == "turned"


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


# A thread takes several runs where there are more than 2^18, too many for the GPU at once

MANY_RUNS = {
    "same_dtype": ("f8", lambda x, y: (x[..., 1:], y[..., :1, :-1])),
    "same_dtype, one by one": ("i1", lambda x, y: (x[..., ::2], y[..., 1::2])),
    "general": ("f4", lambda x, y: (x[..., ::2], y.view("i4")[..., ::2])),
}


@pytest.mark.parametrize("shape", [(513, 1032), (3, 171, 1032)], ids=["two axes", "three axes"])
@pytest.mark.parametrize("how", MANY_RUNS)
def test_every_run_is_added_once_where_a_thread_has_several(driver, how, shape):
    dtype, cut = MANY_RUNS[how]
    x, y = (np.resize(np.arange(k, k + 97), shape).astype(dtype) for k in (0, 13))
    a, b = cut(x, y)
    left, right = memory_of(driver, x).on_device(a), memory_of(driver, y).on_device(b)
    assert form(left, right) == how.partition(",")[0]
    assert_same_values(vecadd.add(left, right).numpy(), np.add(a, b))
