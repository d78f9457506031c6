"""Any layout and any dtypes on the device: numpy.add's sum bit for bit, wherever strides put the elements.

Operands are views of another library's memory, made by the same slicing in NumPy and on the device, so that the same
tests run on the double and on a GPU.
"""

import ctypes
import platform
from dataclasses import dataclass

import numpy as np
import pytest
from arrays import BFLOAT16, DTYPES, assert_same_values, lane, tame_values, values
from device_layouts import kernel, memory_of, numbered, shapes
from hypothesis import example, given
from hypothesis import strategies as st

import vecadd

pytestmark = pytest.mark.usefixtures("values_alone")

NUMBERS = [True, 0, -3, 7, 1.1, -0.0, float("inf"), 1e300, 2 - 0.5j, 2**40,
           np.bool_(True), np.int8(-7), np.uint64(2**63), np.float16(0.1), np.float32(1.1), np.float64(1.1),
           np.complex64(1 - 2j), BFLOAT16.type(1.1)]  # fmt: skip

LIBM = ctypes.CDLL(None)
FE_UPWARD = 0x800 if platform.machine() == "x86_64" else 0x400000


# Layouts


@dataclass
class Layout:
    """A view of `nbytes` bytes: what numpy.ndarray takes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    nbytes: int

    def view(self, host, dtype):
        return np.ndarray(self.shape, dtype, host, self.offset, self.strides)


@st.composite
def layouts(draw, shape, itemsize, may_repeat):
    """Axes in any order of memory, each forwards or backwards, with gaps or without, perhaps all one element, from any
    address on."""
    strides, step, last, offset = [0] * len(shape), itemsize, 0, 0
    for axis in draw(st.permutations(range(len(shape)))):
        repeat = may_repeat and draw(st.integers(0, 9)) == 0
        step *= draw(st.sampled_from([1, 1, 1, 2, 3]))
        stride = 0 if repeat else draw(st.sampled_from([step, step, step, -step]))
        reach = (max(shape[axis], 1) - 1) * abs(stride)
        strides[axis], last = stride, last + reach
        offset += reach if stride < 0 else 0
        step = max(step, reach + step)
    shift = draw(st.sampled_from([0, 0, 0, itemsize, 1]))
    return Layout(tuple(shape), tuple(strides), offset + shift, last + itemsize + shift)


def filled(dtype, nbytes, seed):
    return np.frombuffer(values(dtype, nbytes // dtype.itemsize + 1, seed).tobytes()[:nbytes], np.uint8).copy()


@st.composite
def broadcast_part(draw, shape):
    """A shape that broadcasts to this one."""
    kept = shape[draw(st.integers(0, len(shape))) if draw(st.booleans()) else 0 :]
    return [1 if draw(st.integers(0, 4)) == 0 else extent for extent in kept]


@st.composite
def operands(draw, driver, shape, seed):
    dtype = draw(st.sampled_from(DTYPES))
    layout = draw(layouts(draw(broadcast_part(shape)), dtype.itemsize, True))
    memory = memory_of(driver, filled(dtype, layout.nbytes, seed))
    return memory, layout.view(memory.host, dtype)


def assert_only_the_view_differs(memory, want):
    """On the device the elements of `want`, a view of memory.host, are as they are there, and all else is as it
    was."""
    got = np.frombuffer(bytearray(memory.device.memory()), np.uint8)
    here = np.ndarray(want.shape, want.dtype, got, want.ctypes.data - memory.host.ctypes.data, want.strides)
    assert_same_values(here, want)
    expected = memory.host.copy()
    there = np.ndarray(want.shape, want.dtype, expected, want.ctypes.data - memory.host.ctypes.data, want.strides)
    there[...] = here[...] = np.zeros((), want.dtype)
    assert got.tobytes() == expected.tobytes()


@given(data=st.data(), shape=shapes())
def test_any_layouts_and_dtypes_give_numpys_sum(driver, data, shape):
    (left, a), (right, b) = (data.draw(operands(driver, shape, seed)) for seed in (1, 2))
    want = np.asarray(np.add(a, b))
    assert_same_values(vecadd.add(left.on_device(a), right.on_device(b)).numpy(), want)
    assert left.device.memory() == left.host.tobytes()


@given(data=st.data(), shape=shapes())
def test_out_of_any_layout_and_dtype_gets_the_sum_and_nothing_else_is_written(driver, data, shape):
    (left, a), (right, b) = (data.draw(operands(driver, shape, seed)) for seed in (1, 2))
    dtype = data.draw(st.sampled_from(DTYPES))
    layout = data.draw(layouts(shape, dtype.itemsize, False))
    memory = memory_of(driver, filled(dtype, layout.nbytes, 3))
    out = layout.view(memory.host, dtype)
    on_device = left.on_device(a), right.on_device(b), memory.on_device(out)
    try:
        np.add(a, b, out)
    except TypeError:
        with pytest.raises(TypeError, match="same_kind"):
            vecadd.add(*on_device)
    else:
        assert vecadd.add(*on_device) is on_device[2]
    assert_only_the_view_differs(memory, out)


@given(data=st.data(), shape=shapes())
def test_out_that_overlaps_its_operands_in_any_way_gets_the_sum_of_what_was_there(driver, data, shape):
    dtype = data.draw(st.sampled_from(DTYPES))
    drawn = [data.draw(layouts(shape, dtype.itemsize, repeat)) for repeat in (True, True, False)]
    memory = memory_of(driver, filled(dtype, max(layout.nbytes for layout in drawn), 1))
    a, b, out = (layout.view(memory.host, dtype) for layout in drawn)
    on_device = [memory.on_device(view) for view in (a, b, out)]
    np.add(a.copy(), b.copy(), out)
    vecadd.add(*on_device)
    assert_only_the_view_differs(memory, out)


# Dtypes and numbers


@pytest.mark.parametrize("a", DTYPES, ids=str)
def test_every_pair_of_dtypes_gives_numpys_dtype_and_sum(device, a):
    for b in DTYPES:
        for n in (1, 3, 37, 1024):
            x, y = values(a, n, 1), values(b, n, 2)
            assert_same_values(vecadd.add(vecadd.to_device(x), vecadd.to_device(y)).numpy(), np.add(x, y))


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_numbers_are_as_weak_or_strong_as_in_numpy(device, number):
    for dtype in DTYPES:
        x = values(dtype, 77, 1)
        on_device = vecadd.to_device(x)
        try:
            want = np.add(x, number)
        except OverflowError as error:
            with pytest.raises(OverflowError, match=str(error)):
                vecadd.add(on_device, number)
            continue
        assert kernel(on_device, number) == "strided"
        assert_same_values(vecadd.add(on_device, number).numpy(), want)
        assert_same_values(vecadd.add(number, on_device).numpy(), np.add(number, x))


@given(number=st.floats() | st.floats(-70000, 70000) | st.floats(-1e-7, 1e-7) | st.floats(-1e-38, 1e-38))
@example(number=65520.0)  # the least that float16 rounds to infinity
@example(number=2.0**-25)  # half of its least number: to even, and that is 0
def test_numbers_are_rounded_to_the_nearest_whatever_the_caller_rounds_to(driver, number):
    for dtype in (np.dtype("float16"), BFLOAT16, np.dtype("float32"), np.dtype("complex64")):
        zeros = np.zeros(3, dtype)  # to which the kernel adds without rounding
        x, want = vecadd.to_device(zeros), zeros + number
        LIBM.fesetround(FE_UPWARD)
        got = vecadd.add(x, number)
        LIBM.fesetround(0)
        assert_same_values(got.numpy(), want)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_short_axes_and_rows_of_any_alignment_give_numpys_sum(driver, dtype):
    x = memory_of(driver, values(dtype, 4096, 1))
    y = memory_of(driver, values(dtype, 4096, 2))
    cases = [
        (x.host[: 3 * 341].reshape(341, 3), y.host[:3]),
        (x.host[1 : 1 + 5 * 67].reshape(67, 5), y.host[: 5 * 67].reshape(67, 5)[:, ::-1]),
        (x.host[:2310].reshape(11, 30, 7), y.host[3:333].reshape(11, 30, 1)),
        (x.host[1:3601].reshape(36, 100)[:, :90], y.host[: 40 * 91].reshape(40, 91)[:36, 1:]),
        (x.host[: 64 * 63].reshape(63, 64).T, y.host[: 64 * 63].reshape(64, 63)),
    ]
    for a, b in cases:
        assert_same_values(vecadd.add(x.on_device(a), y.on_device(b)).numpy(), np.add(a, b))


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if lane(dtype).itemsize <= 8], ids=str)
def test_any_byte_but_zero_is_true_and_wide_sums_of_narrow_integers_wrap_first(foreign, dtype):
    a = np.array([127, 128, 255, 1], np.uint8)
    truth = foreign(a, typestr="|b1")
    np.testing.assert_array_equal(vecadd.add(truth, truth, foreign(np.zeros(4, "i8"))).numpy(), 1)
    x, out = tame_values(dtype, 9, 1), np.zeros(9, "c16")
    got = vecadd.add(vecadd.to_device(x), vecadd.to_device(x), vecadd.to_device(out)).numpy()
    assert_same_values(got, np.add(x, x, out))
    narrow = np.full(3, -128, np.int8)
    wide = vecadd.add(vecadd.to_device(narrow), vecadd.to_device(narrow), vecadd.to_device(np.ones(3, "i8")))
    assert_same_values(wide.numpy(), np.zeros(3, "i8"))


# Shapes


@pytest.mark.parametrize(
    ("a", "b"),
    [((), (5,)), ((), ()), ((1,), (4, 5)), ((4, 1), (1, 5)), ((3, 1, 2), (4, 1)), ((0,), (1,)), ((2, 0), (1, 1)),
     ((1,) * 40 + (3,), (3,)), ((2,) * 10, (1,) * 9 + (2,))],
    ids=str,
)  # fmt: skip
def test_shapes_are_broadcast(device, a, b):
    x, y = tame_values(np.dtype("f4"), int(np.prod(a)), 1), tame_values(np.dtype("f4"), int(np.prod(b)), 2)
    x, y = x.reshape(a), y.reshape(b)
    want = np.asarray(x + y)
    assert_same_values(vecadd.add(vecadd.to_device(x), vecadd.to_device(y)).numpy(), want)


def test_axes_that_cannot_be_joined_are_walked_one_by_one_up_to_32(driver):
    host = numbered((2,) * 12 + (1,) * 20)
    axes = np.random.default_rng(1).permutation(32)
    a, b = host.transpose(axes), host[::-1, :, ::-1]
    memory = memory_of(driver, host)
    x, y = memory.on_device(a), memory.on_device(b)
    assert kernel(x, x) == "contiguous"
    assert_same_values(vecadd.add(x, y).numpy(), np.add(a, b))


@pytest.mark.parametrize(
    ("a", "b", "out"),
    [((3,), (4,), None), ((2, 3), (3, 2), None), ((3,), (1, 3), (3,)), ((2, 1), (1, 3), (2, 1)), ((3,), (3,), (4,)),
     ((3,), (3,), ()), ((2, 1), (1, 3), (2, 4)), ((3,), (1,), (1,))],
    ids=str,
)  # fmt: skip
def test_shapes_that_do_not_go_together_are_refused_in_numpys_words(device, a, b, out):
    host = [np.zeros(shape) for shape in (a, b, out) if shape is not None]
    with pytest.raises(ValueError, match="broadcast") as numpys:
        np.add(*host)
    with pytest.raises(ValueError, match="broadcast") as ours:
        vecadd.add(*map(vecadd.to_device, host))
    assert str(ours.value) == str(numpys.value)
