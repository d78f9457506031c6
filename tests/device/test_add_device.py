"""Device addition: numpy.add's values for every dtype and size, in the right kind of array, on the device that the
operands are on. tests/c/kernels has every alignment.

Operands are DeviceArrays and another library's memory with a __cuda_array_interface__.
"""

import sys

import numpy as np
import pytest
from arrays import DTYPES, assert_same_values, numpys_sum, values
from foreign import DLPackArray, ForeignArray
from hypothesis import given, settings
from hypothesis import strategies as st

import vecadd
from vecadd import _core

pytestmark = pytest.mark.usefixtures("silent")

# Bytes: vectors of 16, a warp's and a block's worth of them, and some of each; met from both sides.
BLOCKS = [16, 32, 512, 2048, 4096, 16384, 65536]


def sizes_around_blocks(dtype):
    near = {block // dtype.itemsize + step for block in BLOCKS for step in (-1, 0, 1)}
    return sorted(near | {0, 1, 2, 3, 100003})


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_size_is_numpys_sum(device, dtype):
    for n in sizes_around_blocks(dtype):
        a, b = values(dtype, n, 1), values(dtype, n, 2)
        got = vecadd.add(vecadd.to_device(a), vecadd.to_device(b))
        assert type(got) is vecadd.DeviceArray
        assert_same_values(got.numpy(), numpys_sum(a, b))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_in_place(device, dtype):
    a, b = values(dtype, 1003, 1), values(dtype, 1003, 2)
    left, right = vecadd.to_device(a), vecadd.to_device(b)
    assert vecadd.add(left, right, left) is left
    assert_same_values(left.numpy(), numpys_sum(a, b))
    assert vecadd.add(right, right, right) is right
    assert_same_values(right.numpy(), numpys_sum(b, b))


@settings(max_examples=30)
@given(starts=st.tuples(*[st.integers(0, 70)] * 3), n=st.integers(0, 400))
def test_any_three_windows_of_one_memory(driver, starts, n):
    memory = ForeignArray(driver, np.arange(500, dtype=np.int16))
    a, b, out = (memory.window(start, n) for start in starts)
    want = memory.numpy()
    want[starts[2] : starts[2] + n] = a.numpy() + b.numpy()
    vecadd.add(a, b, out)
    assert_same_values(memory.numpy(), want)


def test_device_array_and_foreign_array_add_in_either_order(foreign):
    a, b = np.arange(100.0), np.ones(100)
    x, y = vecadd.to_device(a), foreign(b)
    for got in (vecadd.add(x, y), vecadd.add(y, x), x + y, y + x):
        assert type(got) is vecadd.DeviceArray
        assert_same_values(got.numpy(), a + b)


@pytest.mark.parametrize(("shape", "strides"), [((3, 7), None), ((3, 7), (28, 4)), ((1, 7), (12345, 4))], ids=str)
def test_contiguous_strides_may_be_spelled_out_and_those_of_one_element_mean_nothing(foreign, shape, strides):
    a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    assert_same_values(vecadd.add(foreign(a, strides=strides), foreign(a)).numpy(), a + a)


@pytest.mark.parametrize("version", range(4))
def test_interface_of_every_version_is_read(foreign, version):
    a = np.arange(10.0)
    x = foreign(a, version=version, descr=[("", a.dtype.str)])
    if version < 3:  # which has both
        del x.__cuda_array_interface__["stream"], x.__cuda_array_interface__["strides"]
    assert_same_values(vecadd.add(x, foreign(a)).numpy(), a + a)


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("stream", [0, "word", 12345])
def test_stream_means_nothing_before_version_3(foreign, version, stream):
    a = np.arange(10.0)
    assert_same_values(vecadd.add(foreign(a, version=version, stream=stream), foreign(a)).numpy(), a + a)


@pytest.mark.parametrize("misaligned", range(3), ids=["a", "b", "out"])
def test_a_misaligned_operand_is_not_for_the_kernel_of_whole_vectors(foreign, misaligned):
    a = np.arange(100, dtype=np.float32)
    arrays = [foreign(a, offset=2 if role == misaligned else 0) for role in range(3)]
    assert _core.explain_route(*arrays)["kernel"] == "strided"
    assert_same_values(vecadd.add(*arrays).numpy(), a + a)


def test_an_interface_that_is_emptied_while_it_is_read_is_read_as_it_was(foreign):
    class Empties:
        def __index__(self):
            x.__cuda_array_interface__.clear()
            return 10

    a = np.arange(10.0)
    x = foreign(a, shape=(Empties(),))
    assert_same_values(vecadd.add(x, foreign(a)).numpy(), a + a)
    assert x.__cuda_array_interface__ == {}


def test_read_only_operands_are_read(foreign):
    a = np.arange(10.0)
    x = foreign(a)
    x.__cuda_array_interface__["data"] = (x.pointer, True)
    assert_same_values(vecadd.add(x, x).numpy(), a + a)


@pytest.mark.parametrize("pointer", [0, 12345])
def test_pointer_of_an_empty_array_is_not_looked_at(foreign, pointer):
    empty = foreign(np.zeros(0, np.float32), data=(pointer, False))
    assert vecadd.add(empty, empty).shape == (0,)
    assert vecadd.add(empty, empty, empty) is empty


def test_what_is_lent_without_elements_is_given_back_at_once(double, foreign):
    lent = DLPackArray(foreign(np.zeros(0, np.float32)))
    vecadd.add(lent, lent)
    before = double.calls("cudaEventRecord")
    vecadd.add(lent, lent)
    assert double.calls("cudaEventRecord") == before
    assert lent.deleted == lent.given == 4


def test_what_is_lent_on_many_slow_streams_is_kept_until_they_are_done(double, driver, foreign):
    lent = [DLPackArray(foreign(np.zeros(1000, np.float32))) for _ in range(40)]
    others = [[foreign(np.zeros(1000, np.float32)) for _ in "bc"] for _ in lent]
    double.fail("cudaEventQuery", 1, 600, True)  # none is ready
    for array, (b, out) in zip(lent, others, strict=True):
        vecadd.add(array, b, out, stream=driver.stream())
    assert [array.deleted for array in lent] == [0] * len(lent)
    double.reset(0)
    driver.synchronize(0)
    _core.memory_counts()  # looks for what is done
    assert [array.deleted for array in lent] == [array.given for array in lent]


def test_events_after_what_is_lent_are_used_again(double, driver, foreign):
    lent, out, events = DLPackArray(foreign(np.zeros(1000, np.float32))), foreign(np.zeros(1000, np.float32)), []
    for _ in range(60):
        vecadd.add(lent, lent, out)
        driver.synchronize(0)
        _core.memory_counts()
        events.append(double.live().events)
    assert events[-1] == events[20]


def test_arrays_without_elements_are_where_out_is(second_device, foreign):
    """No pointer tells where they are."""
    empty, out = foreign(np.zeros(0)), vecadd.to_device(np.zeros(0), second_device)
    assert vecadd.add(empty, empty, out) is out
    assert vecadd.explain(empty, 1, out).details["device"] == second_device


def test_arrays_without_elements_are_where_device_says(second_device, foreign):
    empty = foreign(np.zeros(0))
    for device in (0, second_device):
        assert vecadd.add(empty, empty, device=f"cuda:{device}").device == f"cuda:{device}"


def test_device_sums_raise_no_warnings(device):
    a = vecadd.to_device(np.full(1000, np.finfo(np.float32).max))
    with np.errstate(all="raise"):
        assert np.isinf(vecadd.add(a, a).numpy()).all()


@pytest.mark.parametrize("name", [None, "cuda", "cuda:0"])
def test_device_may_be_named(device, name):
    a = vecadd.to_device(np.arange(10.0))
    assert vecadd.add(a, a, device=name).device == "cuda:0"


def test_no_reference_to_what_names_a_stream_is_left(device):
    class Stream:
        def __init__(self):
            self.__cuda_stream__ = (0, 2)

    stream, x = Stream(), vecadd.to_device(np.arange(3.0))
    named = stream.__cuda_stream__
    before = sys.getrefcount(stream), sys.getrefcount(named)
    for _ in range(3):
        vecadd.add(x, x, x, stream=stream)
    assert (sys.getrefcount(stream), sys.getrefcount(named)) == before
