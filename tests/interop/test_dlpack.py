"""DLPack: device arrays that have it alone are added where they are, and DeviceArrays are given away by it.

Each tensor is taken with the consumer's stream, never copied, and its deleter is called once: after the kernel that
reads it, and after every error.
"""

import ctypes
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from arrays import DTYPES, assert_same_values, numpys_sum, values
from foreign import DLPACK_CUDA, DLPackArray, pointer_of
from foreign import MANAGED as TENSOR
from orders import order_fixture

import vecadd
from vecadd import _core

N = 1000
LEGACY, PER_THREAD = 1, 2
MANAGED, PINNED_HOST = 13, 3
BOTH, OLD = (0, 1), (0,)
order = order_fixture(40, 3)


def finish(driver):
    """All work is done, and vecadd has seen that it is."""
    driver.synchronize(0)
    _core.release()


@pytest.fixture
def lend(foreign, driver):
    """lend(x, versions, **fields): the NumPy array x in another library's device memory, with __dlpack__. Each tensor
    that is given away has been deleted once when the test's work is done."""
    lent = []

    def make(x, versions=BOTH, **fields):
        lent.append(DLPackArray(foreign(x), versions, **fields))
        return lent[-1]

    yield make
    finish(driver)
    assert [x.deleted for x in lent] == [x.given for x in lent]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("versions", [BOTH, OLD], ids=["versioned", "unversioned"])
def test_sum_is_numpys_and_a_device_array(lend, versions, dtype):
    a, b = values(dtype, N, 1), values(dtype, N, 2)
    x, y = lend(a, versions), lend(b, versions)
    got = vecadd.add(x, y)
    assert type(got) is vecadd.DeviceArray
    assert_same_values(got.numpy(), numpys_sum(a, b))
    assert (x.given, y.given) == (1, 1)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 4), (2, 0, 3), (1, 5, 1)], ids=str)
def test_shape_is_kept(lend, shape):
    a = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    got = vecadd.add(lend(a), lend(a))
    assert_same_values(got.numpy(), a + a)


def test_producer_is_told_the_legacy_default_stream_as_1_and_that_nothing_is_to_be_copied(lend):
    x = lend(np.ones(N))
    vecadd.add(x, x)
    assert x.asked[0] == {"stream": LEGACY, "max_version": (1, 1), "copy": False}


def test_producer_is_told_the_stream_of_the_call(lend, driver):
    x, stream = lend(np.ones(N)), driver.stream()
    for given, told in [(stream, stream), (PER_THREAD, PER_THREAD), (0, LEGACY)]:
        x.asked.clear()
        vecadd.add(x, x, stream=given)
        assert [keywords["stream"] for keywords in x.asked] == [told, told]


def test_producer_is_told_the_stream_that_another_operand_leads_to(lend, foreign, driver):
    """So that nothing reaches the legacy default stream from a stream that captures."""
    x, stream = lend(np.ones(N)), driver.stream()
    other = foreign(np.ones(N), stream=stream)
    vecadd.add(x, other)
    vecadd.add(other, x)
    vecadd.add(x, x, other)
    assert [keywords["stream"] for keywords in x.asked] == [stream] * 4


def test_producers_in_lists_are_told_the_stream_that_another_pair_leads_to(lend, foreign, driver):
    x, stream = lend(np.ones(N)), driver.stream()
    other, outs = foreign(np.ones(N), stream=stream), [foreign(np.zeros(N)) for _ in range(3)]
    vecadd.add_many([x, x, other], [x, other, other], outs)
    assert {keywords["stream"] for keywords in x.asked} == {stream}
    assert all((out.numpy() == 2).all() for out in outs)


def test_producers_in_lists_are_read_where_no_array_leads_to_a_stream(lend):
    x = lend(np.ones(N))
    got = vecadd.add_many([x, x], [x, vecadd.to_device(np.ones(N))])
    assert {keywords["stream"] for keywords in x.asked} == {LEGACY}
    assert all((total.numpy() == 2).all() for total in got)


def test_an_out_in_a_lists_producers_memory_is_refused(lend):
    x, y = lend(np.ones(N)), vecadd.to_device(np.ones(N))
    with pytest.raises(ValueError, match="overlaps"):
        vecadd.add_many([x, y], [y, y], [x.array, x])


@pytest.mark.parametrize("given", [False, True], ids=["no stream=", "stream="])
def test_sum_comes_after_what_the_producer_queued_on_the_consumers_stream(order, foreign, driver, given):
    a = np.arange(N, dtype=np.int32)
    source, other = foreign(a), foreign(a, stream=driver.stream())

    class Late(DLPackArray):
        def produce(self, stream):
            driver.copy_late(0 if stream == LEGACY else stream, self.array.pointer, source.pointer, a.nbytes)

    late = Late(foreign(np.zeros_like(a)))
    got = vecadd.add(other, late, stream=driver.stream() if given else None)
    assert_same_values(got.numpy(), a + a)
    finish(driver)


def test_tensor_is_kept_until_the_kernel_is_done(double, lend):
    x = lend(np.ones(N))
    for _ in range(3):
        vecadd.add(x, x)
    assert (x.given, x.deleted) == (6, 0)


def test_later_additions_let_go_of_what_is_done(double, lend, driver):
    x = lend(np.ones(N))
    vecadd.add(x, x)
    driver.synchronize(0)
    y = lend(np.ones(N))
    vecadd.add(y, y)
    assert (x.deleted, y.deleted) == (2, 0)


@pytest.mark.parametrize(
    ("call", "status"),
    [("cudaEventQuery", 900), ("cudaEventQuery", 999), ("cudaStreamIsCapturing", 906), ("cudaStreamIsCapturing", 999)],
)
def test_an_error_of_the_question_does_not_give_a_tensor_back_early(double, lend, call, status):
    """A capture of another thread's, or the legacy default stream that cannot be used beside one, is no answer."""
    x = lend(np.ones(N))
    double.fail(call, 1, status)
    vecadd.add(x, x)
    assert (x.given, x.deleted) == (2, 0)


def test_a_tensor_is_kept_where_the_kernel_can_neither_be_marked_nor_waited_for(double, lend):
    x = lend(np.ones(N))
    vecadd.to_device(np.ones(N))
    for call in ("cudaEventRecord", "cudaStreamSynchronize", "cudaDeviceSynchronize"):
        double.fail(call, 1, 999)
    vecadd.add(x, x)
    double.fail("cudaEventQuery", 1, 600)
    vecadd.memory_stats()
    assert (x.given, x.deleted) == (2, 0)


def test_a_slow_stream_delays_none_of_the_others(double, lend, driver):
    x, y, slow, quick = lend(np.ones(N)), lend(np.ones(N)), driver.stream(), driver.stream()
    double.fail("cudaEventQuery", 1, 600)  # the one of x, which each addition asks for first
    vecadd.add(x, x, stream=slow)
    double.fail("cudaEventQuery", 1, 600)
    double.fail("cudaEventQuery", 1, 600)
    vecadd.add(y, y, stream=quick)
    double.stream_synchronize(quick)
    double.fail("cudaEventQuery", 1, 600)
    _core.release()
    assert (x.deleted, y.deleted) == (0, 2)


@pytest.mark.parametrize("first", [0, 1])
def test_the_legacy_stream_of_one_device_delays_none_of_another(first, double, driver, foreign):
    double.devices(2)
    a = np.ones(N)
    lent = [DLPackArray(foreign(a, device=device), device=(DLPACK_CUDA, device)) for device in (0, 1)]
    outs = [foreign(a, device=device) for device in (0, 1)]
    for device in (first, 1 - first):
        vecadd.add(lent[device], lent[device], outs[device])
    driver.synchronize(1)
    vecadd.memory_stats()
    assert [x.deleted for x in lent] == [0, 2]
    driver.synchronize(0)
    vecadd.memory_stats()
    assert [x.deleted for x in lent] == [2, 2]


def test_one_threads_stream_delays_none_of_another_thread(double, lend, foreign):
    x, y, outs = lend(np.ones(N)), lend(np.ones(N)), [foreign(np.ones(N)) for _ in range(2)]
    slow_has_added, quick_is_done = threading.Event(), threading.Event()

    def slow():
        vecadd.add(x, x, outs[0], stream=PER_THREAD)
        slow_has_added.set()
        quick_is_done.wait()

    def quick():
        slow_has_added.wait()
        vecadd.add(y, y, outs[1], stream=PER_THREAD)
        double.stream_synchronize(PER_THREAD)
        vecadd.memory_stats()
        seen = x.deleted, y.deleted
        quick_is_done.set()
        return seen

    with ThreadPoolExecutor(2) as pool:
        _, seen = pool.submit(slow), pool.submit(quick)
        assert seen.result() == (0, 2)


@pytest.mark.parametrize(
    "later",
    [
        lambda x: vecadd.add(x, x),
        lambda x: vecadd.add_many([x], [x]),
        lambda x: vecadd.plan(x, x, x)(),
        lambda x: vecadd.to_device(np.ones(N)),
        lambda x: x.numpy(),
        lambda x: vecadd.memory_stats(),
        lambda x: vecadd.release(),
    ],
    ids=["add", "add_many", "plan", "to_device", "numpy", "memory_stats", "release"],
)
def test_any_later_call_gives_back_what_is_done(double, lend, driver, later):
    x, ours = lend(np.ones(N)), vecadd.to_device(np.ones(N))
    double.fail("cudaEventQuery", 1, 600)
    vecadd.add(x, x)
    driver.synchronize(0)
    assert x.deleted == 0
    later(ours)
    assert x.deleted == 2


def test_offset_in_bytes_is_added_to_the_pointer(lend):
    a = np.arange(N, dtype=np.float32)
    x = lend(a, shape=(N - 3,), byte_offset=12)
    assert_same_values(vecadd.add(x, x).numpy(), a[3:] * 2)


@pytest.mark.parametrize(
    ("shape", "strides", "steps"),
    [((3, 4), None, (4, 1)), ((3, 4), (4, 1), (4, 1)), ((4, 3), (5, 2), (5, 2)), ((3, 1), (1, 77), (1, 1)),
     ((1,), (2**62,), (1,))],
    ids=str,
)  # fmt: skip
def test_strides_are_counted_in_elements_and_none_are_those_of_c_order(lend, shape, strides, steps):
    a = np.arange(20, dtype=np.int16)
    want = np.lib.stride_tricks.as_strided(a, shape, [2 * step for step in steps])
    x = lend(a, shape=shape, strides=strides)
    assert_same_values(vecadd.add(x, x).numpy(), want + want)


def test_managed_memory_is_device_memory(lend):
    a = np.arange(N)
    x = lend(a, device=(MANAGED, 0))
    assert_same_values(vecadd.add(x, x).numpy(), a + a)


def test_page_locked_memory_is_read_where_it_is(device, foreign, driver):
    pinned = vecadd.empty_pinned(N, np.float32)
    pinned[:] = np.arange(N)
    x = DLPackArray(foreign(pinned), data=pinned.ctypes.data, device=(PINNED_HOST, 0))
    got = vecadd.add(x, vecadd.to_device(pinned)).numpy()
    assert x.asked[0]["stream"] is None
    assert_same_values(got, pinned * 2)
    finish(driver)


def test_out_may_be_lent(lend):
    a = np.arange(N)
    out = lend(np.zeros_like(a))
    assert vecadd.add(lend(a), lend(a), out) is out
    assert_same_values(out.array.numpy(), a + a)


def test_operators_take_lent_arrays(lend):
    a = np.arange(N)
    assert_same_values((vecadd.to_device(a) + lend(a)).numpy(), a + a)


class Broken(DLPackArray):
    def produce(self, stream):
        raise LookupError("asked")


class BrokenDevice(DLPackArray):
    def __dlpack_device__(self):
        raise LookupError("asked where")


class Wordy(DLPackArray):
    def __dlpack_device__(self):
        return "cuda"


# name: (fields of the tensor, exception, what its message says, tensors that were given and have to be deleted)
BAD_TENSORS = {
    "two lanes": ({"dtype": (2, 32, 2)}, TypeError, "2 lanes", 1),
    "no lanes": ({"dtype": (2, 32, 0)}, TypeError, "0 lanes", 1),
    "4-bit integers": ({"dtype": (0, 4, 1)}, TypeError, "4 bits", 1),
    "opaque handles": ({"dtype": (3, 64, 1)}, TypeError, "code 3", 1),
    "float8": ({"dtype": (7, 8, 1)}, TypeError, "code 7", 1),
    "version of the future": ({"major": 2}, BufferError, "version 2", 1),
    "negative extent": ({"shape": (-N,)}, ValueError, "negative", 1),
    "huge extents": ({"shape": (2**40, 2**40)}, ValueError, "larger than any memory", 1),
    "negative number of dimensions": ({"ndim": -1}, ValueError, "-1 dimensions", 1),
    "65 dimensions": ({"ndim": 65, "shape": (1,) * 65}, ValueError, "65 dimensions", 1),
    "null pointer": ({"data": 0}, ValueError, "null", 1),
    "pointer to nowhere": ({"data": 4096}, ValueError, "not memory", 1),
    "misaligned": ({"byte_offset": 1}, ValueError, "align", 1),
    "extent beyond the allocation": ({"shape": (2**30,)}, ValueError, "allocation", 1),
    "offset beyond the allocation": ({"byte_offset": 2**40}, ValueError, "not memory|allocation", 1),
    "capsule that was consumed": ({"name": b"used_dltensor_versioned"}, TypeError, "capsule", 0),
    "capsule of another protocol": ({"name": b"arrow_array"}, TypeError, "capsule", 0),
}


@pytest.mark.parametrize("role", ["a", "b", "out"])
@pytest.mark.parametrize("name", BAD_TENSORS)
def test_bad_tensor_is_refused_and_deleted_once(name, role, lend, foreign, driver):
    fields, exception, message, given = BAD_TENSORS[name]
    a = np.ones(N, np.float32)
    bad, good, out = DLPackArray(foreign(a), **fields), lend(a), lend(a * 7)
    operands = {"a": (bad, good, out), "b": (good, bad, out), "out": (good, good, bad)}[role]
    with pytest.raises(exception, match=message):
        vecadd.add(*operands)
    assert good.deleted == good.given
    finish(driver)
    assert bad.deleted == given
    assert_same_values(out.array.numpy(), a * 7)
    assert_same_values(vecadd.add(good, good).numpy(), a + a)


def test_read_only_out_is_refused(lend):
    out = lend(np.zeros(N), flags=1)
    with pytest.raises(ValueError, match="read-only"):
        vecadd.add(lend(np.ones(N)), lend(np.ones(N)), out)
    assert (out.given, out.deleted) == (1, 1)
    assert not out.array.numpy().any()


def test_read_only_operands_are_added(lend):
    a = np.ones(N)
    assert_same_values(vecadd.add(lend(a, flags=1), lend(a, flags=1)).numpy(), a + a)


@pytest.mark.parametrize(
    ("kind", "exception"), [(Broken, LookupError), (BrokenDevice, LookupError), (Wordy, TypeError)]
)
def test_what_a_producer_raises_reaches_the_caller(foreign, kind, exception):
    bad = kind(foreign(np.ones(N)))
    with pytest.raises(exception, match=r"asked|__dlpack_device__"):
        vecadd.add(vecadd.to_device(np.ones(N)), bad)
    assert bad.given == 0


def test_arrays_on_the_host_are_not_taken(device):
    class OnHost:
        def __init__(self, x):
            self.x = x

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()

        def __dlpack__(self, **keywords):
            raise AssertionError("taken")

    with pytest.raises(TypeError, match="to_device"):
        vecadd.add(vecadd.to_device(np.ones(3)), OnHost(np.ones(3)))


# What DeviceArrays give away.


def name_of(capsule):
    get = ctypes.pythonapi.PyCapsule_GetName
    get.restype, get.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    return get(capsule)


def pointer_in(capsule):
    """The address of the elements; it is an unversioned tensor's first field."""
    return ctypes.c_uint64.from_address(pointer_of(capsule, b"dltensor")).value


class Handed:
    """A capsule in the hands of a consumer that asks for it with other keywords than vecadd does."""

    def __init__(self, array, **keywords):
        self.array, self.keywords = array, keywords

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream, max_version, copy):
        return self.array.__dlpack__(stream=stream, **self.keywords)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("keywords", [{}, {"max_version": (1, 0)}], ids=["unversioned", "versioned"])
def test_device_array_is_taken_by_its_consumer(device, driver, keywords, dtype):
    a = values(dtype, N).reshape(10, 100)
    x = vecadd.to_device(a)
    assert_same_values(vecadd.add(Handed(x, **keywords), x).numpy(), numpys_sum(a, a))
    finish(driver)


@pytest.mark.parametrize(
    ("max_version", "name"),
    [(None, b"dltensor"), ((0, 8), b"dltensor"), ((1, 0), b"dltensor_versioned"), ((7, 3), b"dltensor_versioned")],
)
@pytest.mark.parametrize("where", [(DLPACK_CUDA, 0), (1, 0)], ids=["where it is", "a copy on the host"])
def test_form_is_the_newest_that_the_consumer_knows(device, max_version, name, where):
    assert name_of(vecadd.to_device(np.ones(3)).__dlpack__(dl_device=where, max_version=max_version)) == name


def test_device_is_cuda(device):
    assert vecadd.to_device(np.ones(3)).__dlpack_device__() == (DLPACK_CUDA, 0)


def test_capsule_keeps_the_memory_and_releases_it(device):
    before = _core.memory_counts()["device_blocks"]
    x = vecadd.to_device(np.ones(N))
    capsules = [x.__dlpack__(max_version=(1, 0)), x.__dlpack__()]
    del x
    assert _core.memory_counts()["device_blocks"] == before + 1
    capsules.pop()
    assert _core.memory_counts()["device_blocks"] == before + 1
    capsules.pop()
    assert _core.memory_counts()["device_blocks"] == before


COPIED = 2  # a flag of the tensor


def flags_of(capsule):
    return ctypes.cast(pointer_of(capsule, b"dltensor_versioned"), TENSOR).contents.flags


def test_copy_is_memory_of_its_own_and_says_so(device):
    a = np.arange(N)
    x = vecadd.to_device(a)
    assert flags_of(x.__dlpack__(max_version=(1, 0))) == flags_of(x.__dlpack__(max_version=(1, 0), copy=False)) == 0
    assert [flags_of(x.__dlpack__(max_version=(1, 0), copy=yes)) for yes in (True, np.True_, 1)] == [COPIED] * 3
    assert pointer_in(x.__dlpack__()) == x.__cuda_array_interface__["data"][0]
    copied = x.__dlpack__(copy=True)
    assert pointer_in(copied) != x.__cuda_array_interface__["data"][0]
    before = _core.memory_counts()["device_blocks"]
    del copied
    assert _core.memory_counts()["device_blocks"] == before - 1


def test_consumers_stream_comes_after_the_sum_and_the_release_after_the_consumer(order, driver, foreign):
    a, stream, target = np.arange(N), driver.stream(), foreign(np.zeros(N, int))
    x = vecadd.to_device(a)
    capsule = (x + x).__dlpack__(stream=stream)
    driver.copy_late(stream, target.pointer, pointer_in(capsule), a.nbytes)
    del capsule
    for i in range(3):
        vecadd.to_device(np.full(N, i))
    assert_same_values(target.numpy(), a + a)


@pytest.mark.parametrize(
    ("keywords", "exception", "message"),
    [
        ({"stream": 0}, ValueError, "ambiguous"),
        ({"stream": -2}, ValueError, "handle"),
        ({"stream": 3}, ValueError, "handle"),
        ({"stream": "1"}, TypeError, "handle"),
        ({"stream": True}, TypeError, "handle"),
        ({"max_version": 1}, TypeError, "max_version"),
        ({"dl_device": (8, 0)}, BufferError, "cuda:0"),
        ({"dl_device": (2, 5)}, BufferError, "cuda:0"),
        ({"dl_device": "cpu"}, TypeError, "dl_device"),
        ({"dl_device": (1, 0), "copy": False}, BufferError, "copy"),
        ({"colour": 1}, TypeError, "colour"),
    ],
    ids=str,
)
def test_bad_request_for_a_capsule_is_refused(device, keywords, exception, message):
    with pytest.raises(exception, match=message):
        vecadd.to_device(np.ones(3)).__dlpack__(**keywords)


@pytest.mark.parametrize("stream", [None, -1, LEGACY, PER_THREAD])
def test_stream_has_dlpacks_spellings(device, stream):
    assert name_of(vecadd.to_device(np.ones(3)).__dlpack__(stream=stream)) == b"dltensor"


def test_numpy_takes_it_as_a_copy_on_the_host(device):
    a = np.arange(12.0).reshape(3, 4)
    assert_same_values(np.from_dlpack(vecadd.to_device(a), device="cpu"), a)
