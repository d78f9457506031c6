"""device="cuda" with host arrays: numpy.add's values, kind and warnings, by way of the GPU, pinned memory or not."""

import sys
import threading
import tracemalloc
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from arrays import (
    DTYPES,
    assert_same,
    assert_same_values,
    at_offset,
    guards_intact,
    numpys_sum,
    offset_empty,
    pinned,
    values,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from threads import run_together

import vecadd
from vecadd import _core

pytestmark = pytest.mark.usefixtures("silent")

KIB = 1024

# Bytes: chunks are 128 KiB and more of ordinary memory, 512 KiB and more of pinned; sums end before, at and after some.
CHUNKED = [128 * KIB, 256 * KIB, 384 * KIB, 512 * KIB, 1024 * KIB, 1536 * KIB, 2048 * KIB, 20 << 20]


def ordinary(x):
    return x.copy()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 17, 1000, 100003])
def test_sum_is_numpys(device, n, dtype):
    a, b = values(dtype, n, 1), values(dtype, n, 2)
    assert_same(vecadd.add(a, b, device="cuda"), numpys_sum(a, b))


@pytest.mark.parametrize("dtype", [np.dtype("int8"), np.dtype("float32"), np.dtype("complex128")], ids=str)
@pytest.mark.parametrize("step", [-1, 0, 1])
@pytest.mark.parametrize("nbytes", CHUNKED)
@pytest.mark.parametrize("kind", [pinned, ordinary])
def test_sizes_around_chunks_are_numpys_sum(device, kind, nbytes, step, dtype):
    n = nbytes // dtype.itemsize + step
    a, b = kind(values(dtype, n, 1)), kind(values(dtype, n, 2))
    assert_same(vecadd.add(a, b, device="cuda"), numpys_sum(a, b))


@pytest.mark.parametrize("kinds", [(p, q, r) for p in "op" for q in "op" for r in "op"], ids="".join)
@pytest.mark.parametrize("n", [1, 1000, 700001])
def test_pinned_and_ordinary_memory_may_be_mixed(device, n, kinds):
    a, b, out = ({"o": ordinary, "p": pinned}[kind](values(np.dtype("float32"), n, i)) for i, kind in enumerate(kinds))
    want = numpys_sum(a, b)
    assert vecadd.add(a, b, out, device="cuda") is out
    assert_same_values(out, want)


@pytest.mark.parametrize("kind", [pinned, ordinary])
@pytest.mark.parametrize("n", [100, 3_000_001])
def test_in_place(device, n, kind):
    a, b = kind(values(np.dtype("int32"), n, 1)), kind(values(np.dtype("int32"), n, 2))
    want = a + b
    assert vecadd.add(a, b, b, device="cuda") is b
    assert_same_values(b, want)
    want = a + a
    vecadd.add(a, a, a, device="cuda")
    assert_same_values(a, want)


@settings(max_examples=40)
@given(data=st.data(), dtype=st.sampled_from(DTYPES))
def test_any_size_and_alignment_is_numpys_sum_and_writes_nothing_else(device, data, dtype):
    n = data.draw(st.integers(0, 300_000) | st.integers(0, 100), "n")
    offsets = st.integers(0, 64 // dtype.itemsize).map(lambda i: i * dtype.itemsize)
    a = at_offset(values(dtype, n, 1), data.draw(offsets, "offset of a"))
    b = at_offset(values(dtype, n, 2), data.draw(offsets, "offset of b"))
    out = offset_empty(dtype, n, data.draw(offsets, "offset of out"))
    vecadd.add(a, b, out, device="cuda")
    assert_same_values(out, numpys_sum(a, b))
    assert guards_intact(out)


@pytest.mark.parametrize("shift", [-1000, -1, 1, 1000, 200_000])
def test_out_that_overlaps_an_operand_in_part_gets_the_sum_of_what_was_there(device, shift):
    n = 400_000
    memory = np.arange(n + 400_000, dtype=np.int32)
    a, out = memory[200_000 : 200_000 + n], memory[200_000 + shift : 200_000 + shift + n]
    b = np.arange(n, dtype=np.int32)
    want = a + b
    vecadd.add(a, b, out, device="cuda")
    assert_same_values(out, want)


@pytest.mark.parametrize("order", ["C", "F"])
def test_shape_and_memory_order_are_numpys(device, order):
    a = values(np.dtype("float64"), 300).reshape(5, 60).copy(order=order)
    assert_same(vecadd.add(a, a, device="cuda"), numpys_sum(a, a))


def test_numbers_beyond_64_bits_have_numpys_dtype(device):
    assert_same(vecadd.add(2**80, 0.5, device="cuda"), np.add(2**80, 0.5))
    out = np.zeros(())
    assert vecadd.add(2**80, 0.5, out, device="cuda") is out
    assert_same_values(out, np.array(2.0**80))


def test_a_number_beyond_64_bits_is_added_once_in_place(device):
    a = np.arange(40.0).reshape(2, 20)[:, :5].T
    want = a + 2**80
    assert vecadd.add(a, 2**80, out=a, device=device) is a
    np.testing.assert_array_equal(a, want, strict=True)


def test_an_out_without_elements_has_nothing_added(device):
    """Operands of one row go with an out of no row; NumPy warns of no sum that it does not make."""
    large = np.full((1, 1000), 3e38, np.float32)
    signalling = np.full((1, 1000), 0x7F800001, np.uint32).view(np.float32)
    out = np.empty((0, 1000), np.float32)
    with np.errstate(all="raise"):
        for x, y in ((large, large), (signalling, np.ones((1, 1000), np.int64))):
            assert np.add(x, y, out) is out
            assert vecadd.add(x, y, out, device="cuda") is out


@pytest.mark.parametrize("add", [np.add, partial(vecadd.add, device="cuda")], ids=["numpy", "vecadd"])
def test_a_number_beside_no_elements_is_converted(device, add):
    with np.errstate(over="warn"), pytest.warns(RuntimeWarning, match="overflow"):
        add(np.empty((2, 0), np.float16), 70000)


@pytest.mark.parametrize("name", ["cuda", "cuda:0", 0, np.int8(0)])
def test_route_is_the_transfer(device, name):
    a = np.arange(1000.0)
    assert _core.explain_route(a, a, device=name)["route"] == "transfer"
    assert_same(vecadd.add(a, a, device=name), a + a)


@pytest.mark.parametrize("call", [lambda x, device: vecadd.add(x, x, device=device), vecadd.to_device])
@pytest.mark.parametrize("n", [0, 10])
@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        (True, TypeError, "not True"),
        (0.0, TypeError, "not 0.0"),
        (-1, ValueError, "there is no device -1: devices are counted from 0"),
        (2**80, ValueError, f"there is no device {2**80}: devices are counted from 0"),
        (99, ValueError, "there is no device 99: this process sees"),
        ("cuda:99", ValueError, "there is no device 99: this process sees"),
    ],
    ids=str,
)
def test_what_is_no_device_is_refused_alike_everywhere(device, call, n, name, error, words):
    with pytest.raises(error, match=words):
        call(np.zeros(n), name)


@pytest.mark.parametrize("kind", [pinned, ordinary])
@pytest.mark.parametrize("n", [1000, 2**22 + 1])
def test_an_overflow_is_of_its_own_call(device, n, kind):
    """Pinned memory is read by the kernel up to 16 MiB, and copied beyond."""
    a, b, out = (kind(np.ones(n, np.float32)) for _ in range(3))
    for value, warned in ((3e38, ["overflow encountered in add"]), (1, [])):
        a[-1] = b[-1] = value
        with np.errstate(all="warn"), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            vecadd.add(a, b, out, device="cuda")
        assert [str(warning.message) for warning in caught] == warned


def test_several_threads_at_once_beside_one_that_releases(device):
    a = [values(np.dtype("int64"), 100_000, i) for i in range(4)]
    start, done = threading.Barrier(5), threading.Event()

    def work(x):
        start.wait()
        for _ in range(5):
            assert_same(vecadd.add(x, x, device="cuda"), x + x)

    def release():
        start.wait()
        while not done.is_set():
            vecadd.release()

    def work_and_end():
        try:
            run_together(*(partial(work, x) for x in a))
        finally:
            done.set()

    run_together(work_and_end, release)
    vecadd.release()
    assert kept() == (0, 0)


def kept():
    stats = vecadd.memory_stats()
    return stats["transfer_bytes"], stats["transfer_blocks"]


@pytest.mark.parametrize("kind", [ordinary, pinned])
def test_page_locked_memory_of_transfers_is_counted_and_given_back(device, kind):
    a, b = kind(values(np.dtype("float32"), 100_000, 1)), kind(values(np.dtype("float32"), 100_000, 2))
    vecadd.release()
    assert kept() == (0, 0)
    for _ in range(2):
        vecadd.add(a, b, kind(a), device="cuda")
        bytes_kept = kept()
        assert bytes_kept[0] > 0
        vecadd.add(a, b, kind(a), device="cuda")
        assert kept() == bytes_kept, "the same memory serves the next transfer"
        assert vecadd.release() == bytes_kept[0]
        assert kept() == (0, 0)


def test_large_bool_sums_are_normalised(device):
    a = np.resize(np.array([0, 2, 1, 255], np.uint8), 500_001).view(bool)
    got = vecadd.add(a, a, device="cuda")
    assert set(np.unique(got.view(np.uint8))) == {0, 1}


STAGED = {
    "lists": lambda: ([1, 2, 3], [4.0, 5.0, 6.0]),
    "numbers": lambda: (1, 2.5),
    "array and number": lambda: (np.arange(5, dtype=np.int16), 3),
    "array and float": lambda: (np.arange(5, dtype=np.int16), 1.5),
    "0-d": lambda: (np.array(1.5), np.array(2.0)),
    "two dtypes": lambda: (np.arange(1000, dtype=np.int32), np.arange(1000, dtype=np.float32)),
    "broadcast": lambda: (np.arange(5.0), np.arange(20.0).reshape(4, 5)),
    "outer": lambda: (np.arange(5.0), np.arange(4.0).reshape(4, 1)),
    "empty": lambda: (np.zeros((0, 5)), np.zeros(5)),
    "strided": lambda: (np.arange(1000.0)[::2], np.arange(500.0)),
    "backwards": lambda: (np.arange(1000.0)[::-1], np.arange(1000.0)),
    "byte-swapped": lambda: (np.arange(100).astype(">i4"), np.arange(100).astype(">i4")),
    "misaligned": lambda: (np.zeros(401, np.uint8)[1:].view("f4"), np.arange(100, dtype="f4")),
    "NumPy scalar": lambda: (np.float64(2.5), np.arange(5, dtype=np.float32)),
}


@pytest.mark.parametrize("name", STAGED)
def test_what_is_not_contiguous_or_not_alike_is_added_too(device, name):
    a, b = STAGED[name]()
    got, want = vecadd.add(a, b, device="cuda"), np.add(a, b)
    assert type(got) is type(want)
    assert_same_values(np.asarray(got), np.asarray(want))


def test_an_operand_may_give_an_array_of_a_subclass(device):
    class GivesSubclass:
        def __array__(self, dtype=None, copy=None):
            return np.arange(5.0).view(np.memmap)

    assert_same(vecadd.add(GivesSubclass(), np.arange(5.0), device="cuda"), 2 * np.arange(5.0))


def test_what_is_copied_first_needs_no_python_of_vecadds(device):
    called = []
    operands = [(*make(), None) for make in STAGED.values()] + [(np.arange(5), 1.5, np.zeros(10)[::2])]
    vecadd.add(*operands[0], device="cuda")  # imports what the first call needs
    sys.setprofile(lambda frame, event, _: called.append((event, frame.f_code.co_filename)))
    try:
        for a, b, out in operands:
            vecadd.add(a, b, out, device="cuda")
    finally:
        sys.setprofile(None)
    ours = str(Path(vecadd.__file__).parent)
    assert [file for event, file in called if event == "call" and file.startswith(ours)] == []


@pytest.mark.parametrize(
    "make_out",
    [
        lambda: np.zeros(10)[::2],
        lambda: np.zeros((3, 5)),
        lambda: np.zeros(5, ">f8"),
        lambda: np.zeros(5, "c16"),
        lambda: np.zeros(5, "f4"),
    ],
    ids=["strided", "larger", "byte-swapped", "wider", "narrower"],
)
def test_out_may_be_whatever_numpy_takes(device, make_out):
    a, out, want = np.arange(5.0), make_out(), make_out()
    assert vecadd.add(a, a, out, device="cuda") is out
    np.add(a, a, out=want)
    assert out.tobytes() == want.tobytes()


def test_a_sum_is_made_once_where_out_is_larger(device):
    out = np.zeros((1000, 2000))[:, ::2]
    tracemalloc.start()
    try:
        vecadd.add([1.0], [2.0], out, device="cuda")
        assert tracemalloc.get_traced_memory()[1] < out.nbytes // 4
    finally:
        tracemalloc.stop()
    assert np.all(out == 3)


def test_out_whose_class_refuses_additions_is_refused_and_left(device):
    class Refuses(np.ndarray):
        __array_ufunc__ = None

    out = np.zeros(3).view(Refuses)
    for add in (np.add, partial(vecadd.add, device="cuda")):
        with pytest.raises(TypeError, match="does not support ufuncs"):
            add([1.0, 2.0, 3.0], [4, 5, 6], out)
    assert out.tobytes() == bytes(24)


def test_a_transfer_after_one_that_failed_writes_its_own_sum_and_nothing_else(double, device):
    """The slots that the chunks go through stay for the next transfer, with what was in them when it failed."""
    dtype = np.dtype("float32")
    long, a, b = np.ones(100_003, dtype), values(dtype, 10, 1), values(dtype, 10, 2)
    for _ in range(3):
        double.fail("cudaStreamSynchronize", 1, 999)
        with pytest.raises(RuntimeError, match="cudaStreamSynchronize"):
            vecadd.add(long, long, device="cuda")
        out = offset_empty(dtype, 10, 0)
        vecadd.add(a, b, out, device="cuda")
        assert_same_values(out, numpys_sum(a, b))
        assert guards_intact(out)
