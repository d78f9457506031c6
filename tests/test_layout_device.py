"""Any layout and any dtypes on the device: numpy.add's sum bit for bit, wherever strides put the elements.

Operands are views of another library's memory, made by the same slicing in NumPy and on the device, so that the same
tests run on the double and on a GPU; those with arrays of CuPy and PyTorch need one.
"""

import ctypes
import platform
import warnings
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from arrays import BFLOAT16, DTYPES, assert_same_values, lane, tame_values, values
from foreign import ForeignArray, View
from hypothesis import example, given, settings
from hypothesis import strategies as st

import vecadd
from vecadd import _core

NUMBERS = [True, 0, -3, 7, 1.1, -0.0, float("inf"), 1e300, 2 - 0.5j, 2**40,
           np.bool_(True), np.int8(-7), np.uint64(2**63), np.float16(0.1), np.float32(1.1), np.float64(1.1),
           np.complex64(1 - 2j), BFLOAT16.type(1.1)]  # fmt: skip

LIBM = ctypes.CDLL(None)
FE_UPWARD = 0x800 if platform.machine() == "x86_64" else 0x400000


@pytest.fixture(autouse=True)
def silent():
    """numpy.add is asked for values; device operands raise no warnings of their own."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def kernel(*operands):
    """Which kernel adds them."""
    plan = _core.explain_route(*operands)
    assert plan["route"] == "device"
    return plan["kernel"]


def form(*operands):
    """Which form of the strided kernel."""
    return _core.explain_route(*operands)["layout"]


@dataclass
class Memory:
    """Bytes on the host and the same ones on the device."""

    host: np.ndarray[Any, Any]
    device: ForeignArray

    def on_device(self, view):
        return View(self.device, self.host, view)


def memory_of(driver, host):
    return Memory(host, ForeignArray(driver, host))


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


def shapes():
    return st.lists(st.sampled_from([1, 2, 3, 4, 5, 8, 0, 67]), max_size=4).filter(lambda s: np.prod(s) <= 1500)


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
    """On the device the elements of `want`, a view of memory.host, hold what they hold there, and all else is as it
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


def test_numbers_are_added_by_the_operators(device):
    x = vecadd.to_device(np.arange(5.0))
    assert_same_values((x + 1).numpy(), np.arange(5.0) + 1)
    assert_same_values((1 + x).numpy(), 1 + np.arange(5.0))
    assert_same_values((np.float32(1) + x).numpy(), np.float32(1) + np.arange(5.0))
    x += 2.5
    assert_same_values(x.numpy(), np.arange(5.0) + 2.5)


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
    assert kernel(x, x) == "tuned"
    assert_same_values(vecadd.add(x, y).numpy(), np.add(a, b))


def test_operands_are_broadcast_to_a_larger_out(device):
    out = vecadd.to_device(np.zeros((3, 4)))
    assert vecadd.add(vecadd.to_device(np.arange(4.0)), 1, out) is out
    assert_same_values(out.numpy(), np.broadcast_to(np.arange(4.0) + 1, (3, 4)))


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


# Which kernel: what is one run of memory for all operands must not fall back


def numbered(shape, dtype="f4"):
    return np.arange(1, 1 + int(np.prod(shape)), dtype=dtype).reshape(shape)


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
    assert kernel(*on_device) == "tuned"
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


# With the arrays of the libraries themselves


def on_gpu(runtime, name):
    if runtime != "gpu":
        pytest.skip("needs a GPU")
    return pytest.importorskip(name)


@pytest.mark.gpu
@settings(max_examples=200)
@given(data=st.data(), shape=shapes())
def test_views_of_cupy_give_numpys_sum(runtime, data, shape):
    cupy = on_gpu(runtime, "cupy")
    hosts, arrays = [], []
    for seed in (1, 2):
        dtype = data.draw(st.sampled_from([dtype for dtype in DTYPES if dtype != BFLOAT16]))
        x = values(dtype, int(np.prod(shape)), seed).reshape(shape)
        axes = data.draw(st.permutations(range(x.ndim)))
        cut = tuple(slice(None, None, data.draw(st.sampled_from([1, 1, 2, -1]))) for _ in shape)
        undo = np.argsort(axes) if len(axes) else ()
        hosts.append(x[cut].transpose(axes).transpose(undo))
        arrays.append(cupy.asarray(x)[cut].transpose(axes).transpose([int(axis) for axis in undo]))
    try:
        want = np.asarray(np.add(*hosts))
    except ValueError:
        with pytest.raises(ValueError, match="broadcast"):
            vecadd.add(*arrays)
        return
    got = vecadd.add(*arrays)
    assert type(got) is cupy.ndarray
    assert_same_values(got.get(), want)


def same_as_torchs(torch, x, y):
    if torch.result_type(x, y) == torch.complex32:  # of a float16 tensor and a complex number
        with pytest.raises(TypeError, match="the sum has dtype complex32; vecadd takes"):
            vecadd.add(x, y)
        return
    got, want = vecadd.add(x, y), torch.add(x, y)
    assert got.dtype == want.dtype
    assert torch.equal(got, want)


@pytest.mark.gpu
def test_tensors_promote_by_torchs_rules(runtime):
    torch = on_gpu(runtime, "torch")
    names = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
             "complex64", "complex128"]  # fmt: skip
    made = [torch.arange(6, device="cuda").to(getattr(torch, name)) for name in names]
    for a, b in product(made, made):
        for x, y in ((a, b), (a, b[0]), (a[0], b), (a.view(2, 3), b.view(2, 3).flip(0)), (a.view(3, 2).T, b[:3])):
            same_as_torchs(torch, x, y)


@pytest.mark.gpu
@pytest.mark.parametrize("number", [True, 3, 2.5, 1 - 2j])
def test_numbers_promote_tensors_by_torchs_rules(runtime, number):
    torch = on_gpu(runtime, "torch")
    for name in ("bool", "uint8", "int64", "float16", "bfloat16", "float32", "complex64"):
        same_as_torchs(torch, torch.arange(6, device="cuda").to(getattr(torch, name)), number)


@pytest.mark.gpu
def test_strided_sum_may_be_captured_into_a_graph(runtime):
    torch = on_gpu(runtime, "torch")
    a, row, out = (
        torch.arange(12.0, device="cuda").view(3, 4),
        torch.ones(4, device="cuda"),
        torch.zeros(3, 4, device="cuda"),
    )
    vecadd.add(a, row, out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        vecadd.add(a, row, out)
        vecadd.add(out.T, 2.0, out.T)
    out.zero_()
    graph.replay()
    assert torch.equal(out, a + row + 2)


@pytest.mark.slow
@pytest.mark.gpu
def test_strided_sums_of_more_than_2_to_the_32_elements(runtime):
    torch = on_gpu(runtime, "torch")
    n = 2**32 + 4099
    if torch.cuda.mem_get_info()[0] < 5 * n:
        pytest.skip("needs 20 GB of device memory")
    a = torch.arange(251, device="cuda", dtype=torch.uint8).repeat(n // 251 + 1)[:n]
    out = vecadd.add(a, 1)
    assert torch.equal(out, a + 1)
    assert torch.equal(vecadd.add(a.flip(0), a[:1], out), a.flip(0) + a[0])
    wide = vecadd.add(a.view(1, -1).expand(2, n)[:, ::3], a[:2].view(2, 1))
    assert torch.equal(wide[1], a[::3] + a[1])


@pytest.mark.slow
@pytest.mark.gpu
def test_every_second_of_2_to_the_33_bytes_and_a_transposed_array_of_2_to_the_32(runtime):
    torch = on_gpu(runtime, "torch")
    n = 2**33 + 6
    if torch.cuda.mem_get_info()[0] < 4 * n:
        pytest.skip("needs 34 GB of device memory")
    a = torch.arange(251, device="cuda", dtype=torch.uint8).repeat(n // 251 + 1)[:n]
    every_second = vecadd.add(a[::2], a[1::2])
    assert torch.equal(every_second, a[::2] + a[1::2])
    del every_second
    edge = 2**16 + 8
    square = a[: edge * edge].view(edge, edge)
    out = torch.empty_like(square)
    assert form(square.T, square, out) == "tiles"
    vecadd.add(square.T, square, out)
    assert torch.equal(out, square.T + square)
