"""DeviceArray's own C exchange table: other libraries take and make DeviceArrays by it, without a call of Python's."""

import ctypes
from ctypes import byref, c_int, c_void_p

import numpy as np
import pytest
import test_exchange_table as table
from arrays import assert_same_values
from foreign import MANAGED, DLTensor, ForeignStream, _Versioned, consume, pointer_of
from orders import order_fixture

import vecadd
from vecadd import _core

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
order = order_fixture(20, 3)
SET_ERROR = ctypes.CFUNCTYPE(None, c_void_p, ctypes.c_char_p, ctypes.c_char_p)
LEND = ctypes.PYFUNCTYPE(c_int, ctypes.py_object, ctypes.POINTER(MANAGED))
TAKE = ctypes.PYFUNCTYPE(c_int, MANAGED, ctypes.POINTER(ctypes.py_object))
ALLOCATE = ctypes.CFUNCTYPE(c_int, ctypes.POINTER(DLTensor), ctypes.POINTER(MANAGED), c_void_p, SET_ERROR)

offered = table.Table.from_address(pointer_of(vecadd.DeviceArray.__dlpack_c_exchange_api__, table.CAPSULE))
lend, take, allocate = (
    kind(getattr(offered, name))
    for kind, name in ((LEND, "managed_from_object"), (TAKE, "object_from_managed"), (ALLOCATE, "allocate"))
)


def borrowed(x):
    tensor = DLTensor()
    assert offered.tensor_from_object(x, byref(tensor)) == 0
    return tensor


def lent(x):
    made = MANAGED()
    assert lend(x, byref(made)) == 0
    return made


def taken(managed):
    found = ctypes.py_object()
    assert take(managed, byref(found)) == 0
    x = found.value
    ctypes.pythonapi.Py_DecRef(found)  # the reference that the table gave
    return x


def like(shape, device=(table.CUDA, 0), dtype=(table.FLOAT, 32, 1)):
    """A prototype of which only shape, dtype and device count."""
    extents = (ctypes.c_int64 * len(shape))(*shape)
    return DLTensor(None, *device, len(shape), *dtype, extents, None, 0)


def test_the_table_is_of_version_1_and_complete():
    assert (offered.major, offered.minor, offered.previous) == (1, 3, None)
    assert all((offered.allocate, offered.managed_from_object, offered.object_from_managed))


@pytest.mark.parametrize("kind", [table.CUDA, table.CPU])
def test_the_work_stream_is_the_legacy_default_stream(kind):
    stream = c_void_p(7)
    assert offered.current_stream(kind, 0, byref(stream)) == 0
    assert stream.value is None


@pytest.mark.parametrize(
    "view", [lambda x: x, lambda x: x[:, ::2, 1:], lambda x: x[1, 1, 1], lambda x: x[:0], lambda x: x[::-1, None]],
    ids=["whole", "slices", "no dimension", "no element", "backwards"],
)  # fmt: skip
def test_an_array_is_described_as_it_is(device, view):
    x, want = view(vecadd.to_device(A)), view(A)
    tensor = borrowed(x)
    assert (tensor.data or 0) + tensor.byte_offset == x.__cuda_array_interface__["data"][0]
    assert (tensor.device_type, tensor.device_id) == (table.CUDA, 0)
    assert (tensor.code, tensor.bits, tensor.lanes) == (table.FLOAT, 32, 1)
    assert tuple(tensor.shape[: tensor.ndim]) == want.shape
    if want.size:
        assert tuple(tensor.strides[: tensor.ndim]) == tuple(stride // 4 for stride in want.strides)
    del tensor


def test_lent_memory_stays_until_its_deleter_runs(device, driver):
    before = _core.memory_counts()
    x = vecadd.to_device(A)
    managed = lent(x)
    tensor = managed.contents.tensor
    del x
    target = driver.allocate(A.nbytes)
    driver.copy(0, target, tensor.data, A.nbytes)
    np.testing.assert_array_equal(np.frombuffer(driver.read(target, A.nbytes), A.dtype), A.ravel())
    managed.contents.deleter(ctypes.addressof(managed.contents))
    _core.release()
    assert _core.memory_counts() == before


def test_lent_memory_becomes_an_array_again(device):
    x = vecadd.to_device(A)
    back = taken(lent(x[:, ::2]))
    assert type(back) is vecadd.DeviceArray
    assert back.__cuda_array_interface__ == x[:, ::2].__cuda_array_interface__
    del x
    assert_same_values((back + 1).numpy(), A[:, ::2] + 1)


@pytest.mark.parametrize("shape", [(3, 5), (), (0, 4)], ids=str)
def test_memory_is_made_and_becomes_an_array(device, driver, foreign, shape):
    errors, made = [], MANAGED()
    x = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    # By CFUNCTYPE, which calls without the GIL.
    assert allocate(byref(like(shape)), byref(made), None, SET_ERROR(lambda *error: errors.append(error))) == 0
    tensor = made.contents.tensor
    if x.size:
        driver.copy(0, tensor.data, foreign(x).pointer, x.nbytes)
    array = taken(made)
    assert (array.shape, array.dtype, array.device) == (shape, x.dtype, "cuda:0")
    assert_same_values(array.numpy(), x)
    assert errors == []


@pytest.mark.parametrize(
    ("prototype", "kind"),
    [
        (like((3,), device=(table.CPU, 0)), b"BufferError"),
        (like((3,), dtype=(table.FLOAT, 128, 1)), b"BufferError"),
        (like((3,), dtype=(table.FLOAT, 32, 2)), b"BufferError"),
        (like((-1,)), b"BufferError"),
        (like((2**40, 2**40)), b"BufferError"),
        (like((3,), device=(table.CUDA, 99)), b"ValueError"),
        (like((2**50,)), b"MemoryError"),
    ],
    ids=["the host", "bits", "lanes", "a negative extent", "beyond any memory", "no such GPU", "too large"],
)
def test_what_cannot_be_made_is_reported_by_the_callers_function(device, prototype, kind):
    errors, made = [], MANAGED()
    report = SET_ERROR(lambda context, kind, message: errors.append((context, kind, message)))
    assert allocate(byref(prototype), byref(made), 7, report) == -1
    assert not made
    ((context, found, message),) = errors
    assert (context, found) == (7, kind)
    assert message


def test_another_librarys_memory_does_not_become_an_array(foreign):
    deleted = []
    deleter = type(_Versioned().deleter)(deleted.append)
    tensor = like((3,))
    tensor.data, tensor.strides = foreign(A).pointer, (ctypes.c_int64 * 1)(1)
    managed = _Versioned(1, 3, None, deleter, 0, tensor)
    with pytest.raises(BufferError, match="another library's"):
        take(ctypes.pointer(managed), byref(ctypes.py_object()))
    assert deleted == []


@pytest.mark.parametrize("how", ["borrowed", "lent"])
def test_work_on_the_work_stream_comes_after_the_arrays_own_and_before_its_memory_goes(driver, foreign, how):
    side, n = driver.stream(), 4096
    ones, target = np.ones(n, np.int32), driver.allocate(4 * n)
    one, minus_one, numbers = foreign(ones), foreign(-ones), [foreign(ones * i) for i in range(8)]
    for i in range(8):
        driver.delay(side)
        x = vecadd.add(numbers[i], one, stream=ForeignStream(side))  # its home is `side`
        if how == "borrowed":
            driver.copy(0, target, borrowed(x).data, 4 * n)
        else:
            managed = lent(x)
            driver.copy(0, target, managed.contents.tensor.data, 4 * n)
            managed.contents.deleter(ctypes.addressof(managed.contents))
        del x
        after = vecadd.add(minus_one, minus_one, stream=side)  # may take its memory
        assert_same_values(after.numpy(), -2 * ones)  # the driver's copy may still be queued
        np.testing.assert_array_equal(np.frombuffer(driver.read(target, 4 * n), np.int32), ones * (i + 1))
    driver.synchronize(0)
    _core.release()


def test_what_a_consumer_wrote_is_there_for_later_work_on_the_arrays_own_stream(driver, foreign):
    side, n = driver.stream(), 4096
    ones = np.ones(n, np.int32)
    x, source = vecadd.add(foreign(ones), foreign(ones), stream=ForeignStream(side)), foreign(ones * 7)
    managed = lent(x)
    driver.delay(0)
    driver.copy(0, managed.contents.tensor.data, source.pointer, 4 * n)
    assert_same_values(vecadd.add(taken(managed), 1, stream=side).numpy(), ones * 8)


def test_memory_stays_until_the_work_of_a_consumer_that_gives_its_tensor_back(order, driver, foreign):
    """The consumer's stream is the one that it named when it took the capsule."""
    side, consumer, n = driver.stream(), driver.stream(), 4096
    ones = np.ones(n, np.int32)
    source, target = foreign(ones), foreign(ones * 0)
    kept = vecadd.add(source, 0, stream=ForeignStream(consumer))  # which keeps the consumer's stream
    x = vecadd.add(source, 4, stream=ForeignStream(side))
    capsule = x.__dlpack__(stream=consumer, max_version=(1, 0))
    managed = consume(capsule)
    driver.copy_late(consumer, target.pointer, managed.contents.tensor.data, 4 * n)
    back = taken(managed)
    del x, back
    for i in range(3):
        vecadd.add(source, i, stream=side)  # may take the memory
    assert_same_values(target.numpy(), ones * 5)
    driver.synchronize(0)
    del kept
    _core.release()


def test_a_copy_made_for_a_capture_is_there_when_the_graph_runs(order, driver, foreign):
    """A consumer that captures cannot wait for the copy, which is made at once on the array's stream."""
    stream, n = driver.stream(), 4096
    ones = np.ones(n, np.int32)
    x, out = vecadd.add(foreign(ones), 6, stream=driver.stream()), foreign(ones * 0, stream=stream)
    driver.synchronize(0)
    with driver.capture(stream) as graph:
        capsule = x.__dlpack__(stream=stream, copy=True, max_version=(1, 0))
        managed = ctypes.cast(pointer_of(capsule, b"dltensor_versioned"), MANAGED)
        driver.copy(stream, out.pointer, managed.contents.tensor.data, 4 * n)
    driver.launch(graph[0], stream)
    assert_same_values(out.numpy(), ones * 7)
    driver.synchronize(0)
    del capsule
    _core.release()


def test_two_borrowed_arrays_stay_until_the_work_that_uses_both(driver, foreign):
    """A consumer borrows all arrays of its call before it queues anything."""
    side, n = driver.stream(), 4096
    ones, target = np.ones(n, np.int32), driver.allocate(4 * n)
    one, minus_one, numbers = foreign(ones), foreign(-ones), [foreign(ones * i) for i in range(8)]
    driver.synchronize(0)
    for i in range(8):
        x, y = (vecadd.add(numbers[i], one, stream=ForeignStream(side)) for _ in range(2))
        first, second = borrowed(x), borrowed(y)
        driver.delay(0)
        for tensor in (second, first):
            driver.copy(0, target, tensor.data, 4 * n)
        del x, y
        after = [vecadd.add(minus_one, minus_one, stream=side) for _ in range(2)]  # may take their memory
        assert_same_values(after[0].numpy(), -2 * ones)
        np.testing.assert_array_equal(np.frombuffer(driver.read(target, 4 * n), np.int32), ones * (i + 1))
    driver.synchronize(0)
    _core.release()


@pytest.mark.parametrize("use", ["an operand", "a view", "out", "numpy", "a list", "an export"])
def test_vecadds_later_work_comes_after_a_consumers_on_a_borrowed_array(order, driver, foreign, use):
    side, other, n = driver.stream(), driver.stream(), 4096
    ones, sevens = np.ones(n, np.int32), foreign(np.full(n, 7, np.int32))
    x, out = (vecadd.add(foreign(ones), 0, stream=ForeignStream(side)) for _ in range(2))
    view, target = x[:], foreign(np.zeros(n, np.int32))
    driver.delay(0)
    driver.copy(0, borrowed(x).data, sevens.pointer, 4 * n)
    if use == "out":
        vecadd.add(out, 0, x, stream=side)
        assert_same_values(x.numpy(), ones)
    elif use == "numpy":
        assert_same_values(x.numpy(stream=other), ones * 7)
    elif use == "an export":
        kept = vecadd.add(x, 0, stream=ForeignStream(other))  # which keeps the other stream
        capsule = view.__dlpack__(stream=other)
        driver.copy_late(other, target.pointer, view.__cuda_array_interface__["data"][0], 4 * n)
        del capsule, x, view
        for i in range(3):
            vecadd.add(foreign(ones), i, stream=side)
        assert_same_values(target.numpy(), ones * 7)
        assert_same_values(kept.numpy(), ones * 7)
    else:
        if use == "a list":
            vecadd.add_many([x], [1], [out], stream=side)
        else:
            vecadd.add(view if use == "a view" else x, 1, out, stream=side)
        assert_same_values(out.numpy(), ones * 8)
    driver.synchronize(0)


def test_an_array_that_was_borrowed_says_that_it_is_on_the_work_stream(driver, foreign):
    x = vecadd.add(foreign(np.ones(8)), 1.0, stream=ForeignStream(driver.stream()))
    view = x[2:]
    assert x.__cuda_array_interface__["stream"] != 1
    borrowed(view)
    assert x.__cuda_array_interface__["stream"] == view.__cuda_array_interface__["stream"] == 1
