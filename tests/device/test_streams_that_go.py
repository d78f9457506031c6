"""Streams that their owner destroys: vecadd keeps the owner as long as it may use the stream, or does without it.

CUDA reads what a handle points to: a call with that of a destroyed stream ends the process, on the double as on a GPU.
What is read too late, when the memory has gone back, is a fault of the double's.
"""

import gc
import itertools
import sys
import threading
import weakref
from functools import partial
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from arrays import assert_same_values
from conftest import ON_DOUBLE
from foreign import Borrowed, DLPackArray, ForeignArray, ForeignStream
from threads import run_together

import vecadd
from vecadd import _core, interop

pytestmark = pytest.mark.skipif(not ON_DOUBLE, reason="the libraries' own tests have GPUs")

N = 20_000  # more than what is kept for the next array of its size
A = np.arange(N, dtype=np.int32)
PER_THREAD = 2


class Stream:
    """CuPy's, and Numba's by `handle`: the stream goes with its object. CuPy's is current inside a with block."""

    def __init__(self, nonblocking=False):
        self.double = sys.modules["double.control"]
        self.ptr = self.handle = self.double.stream_create(0, nonblocking=nonblocking)
        self.external = False

    def __del__(self):
        self.double.stream_destroy(self.ptr)

    def __enter__(self):
        current.stream = weakref.ref(self)
        return self

    def __exit__(self, *exception):
        current.stream = None


current = threading.local()


@pytest.fixture
def cupy(double, monkeypatch):
    """A module `cupy` with a current stream, which it has no reference to."""

    def get_current_stream(device):
        known = getattr(current, "stream", None)
        return known() if known else SimpleNamespace(ptr=0)

    module = ModuleType("cupy")
    module.cuda = SimpleNamespace(get_current_stream=get_current_stream, Stream=Stream)
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def settle():
    """What is put off is done, and the streams' owners go."""
    _core.release()
    gc.collect()


def numbers(driver, k=0):
    return vecadd.add(ForeignArray(driver, A), k)


@pytest.fixture(autouse=True)
def nothing_left(double, device):
    """Every stream of a test's is destroyed in the end, and no memory stays parked."""
    settle()
    before = double.live()
    yield
    settle()
    assert double.live().device_blocks == before.device_blocks
    assert [each for each in gc.get_objects() if isinstance(each, Stream)] == []


@pytest.mark.parametrize("nonblocking", [False, True], ids=["blocking", "non-blocking"])
@pytest.mark.parametrize("seed", range(5))
def test_a_loan_outlives_the_stream_that_was_current(cupy, double, driver, nonblocking, seed):
    """`with cupy.cuda.Stream(): y = cupy.from_dlpack(x)`, later `del y`."""
    double.reset(seed)
    x, target = numbers(driver), ForeignArray(driver, np.zeros_like(A))
    with cupy.cuda.Stream(nonblocking) as stream:
        y = Borrowed(x, stream.ptr)
        driver.copy(stream.ptr, target.pointer, y.pointer, A.nbytes)
        known = weakref.ref(stream)
        del stream
    gc.collect()
    assert known() is not None
    del x, y
    for k in range(3):
        numbers(driver, k)  # may take the memory
    assert_same_values(target.numpy(), A)
    settle()
    assert known() is None


@pytest.mark.parametrize("nonblocking", [False, True], ids=["blocking", "non-blocking"])
@pytest.mark.parametrize("given", ["a handle", "an object"])
@pytest.mark.parametrize("many", [0, 1, 2], ids=["add", "add_many", "a pair by itself"])
def test_a_sum_outlives_the_stream_that_it_was_made_on(cupy, driver, given, nonblocking, many):
    with cupy.cuda.Stream(nonblocking) as stream:
        spelled = stream if given == "an object" else stream.ptr
        if given == "an object":
            current.stream = None  # which says the same
        x, ones = ForeignArray(driver, A), ForeignArray(driver, np.ones_like(A))
        totals = vecadd.add_many([x, x], [ones, 1], stream=spelled) if many else [vecadd.add(x, 1, stream=spelled)]
        total = totals[many // 2]
        view = total[1:]
        del stream, spelled, totals
    again = vecadd.add(total, total.copy())
    assert_same_values(again.numpy(), 2 * (A + 1))
    del total
    assert_same_values(view.numpy(), A[1:] + 1)
    capsule = view.__dlpack__(stream=1)
    del view, again, capsule


class NumbaArray:
    """A device array of Numba's: it has the stream that its interface names."""

    def __init__(self, x, stream=0):
        self.x, self.stream = x, stream
        self.__cuda_array_interface__ = x.__cuda_array_interface__ | ({"stream": stream.handle} if stream else {})


class NumbaLike(interop.Numba):
    def adopt(self, array):
        return NumbaArray(array)


@pytest.fixture
def numba(monkeypatch):
    monkeypatch.setitem(interop.LIBRARIES, "numba", NumbaLike())
    monkeypatch.setattr(NumbaArray, "__module__", "numba.cuda")
    yield
    interop._known.pop(NumbaArray)


@pytest.mark.parametrize("many", [False, True], ids=["add", "add_many"])
@pytest.mark.parametrize("seed", range(5))
def test_an_adopted_sum_outlives_the_stream_that_its_operand_names(numba, double, driver, many, seed):
    """Numba's: the caller never named it."""
    double.reset(seed)
    source, target, stream = ForeignArray(driver, A), ForeignArray(driver, np.zeros_like(A)), Stream()
    x = NumbaArray(source, stream)
    total = vecadd.add_many([x, x], [x, x])[1] if many else vecadd.add(x, x)
    again = vecadd.add(total, total)  # its stream is known by the sum alone
    assert again.__cuda_array_interface__["stream"] == stream.ptr
    driver.copy(stream.ptr, target.pointer, total.x.__cuda_array_interface__["data"][0], A.nbytes)
    del x, stream
    gc.collect()
    del total
    for k in range(3):
        numbers(driver, k)  # may take the memory
    assert_same_values(again.x.numpy(), 4 * A)
    assert_same_values(target.numpy(), 2 * A)


def borrow_and_add(cupy, driver, target):
    for k in range(20):
        x = numbers(driver, k)
        with cupy.cuda.Stream(bool(k % 2)) as stream:
            y = Borrowed(x, stream.ptr)
            driver.copy(stream.ptr, target.pointer, y.pointer, A.nbytes)
            total = vecadd.add(x, x, stream=stream.ptr)
            del stream
        del x, y
        (total + total).numpy()


def test_eight_threads_have_streams_of_their_own(cupy, driver):
    targets = [ForeignArray(driver, np.zeros_like(A)) for _ in range(8)]
    run_together(*(partial(borrow_and_add, cupy, driver, target) for target in targets))
    for target in targets:
        assert_same_values(target.numpy(), A + 19)


@pytest.mark.parametrize("blocking", [False, True], ids=["non-blocking capture", "blocking capture"])
@pytest.mark.parametrize("kept", [True, False], ids=["an owner", "a bare handle"])
def test_another_threads_capture_goes_on(cupy, double, driver, blocking, kept):
    x, target = (ForeignArray(driver, values) for values in (A, np.zeros_like(A)))
    arrays = [vecadd.add(ForeignArray(driver, A), k, stream=ForeignStream(driver.stream())) for k in range(4)]
    captured = double.stream_create(0, nonblocking=not blocking)
    vecadd.add(x, x, target, stream=captured)
    with driver.capture(captured) as graph:

        def lend():
            for array in arrays:
                with cupy.cuda.Stream(nonblocking=True) as stream:
                    if not kept:
                        current.stream = None
                    y = Borrowed(array, stream.ptr)
                    total = vecadd.add(array, 1, stream=stream.ptr)
                    del stream
                del y, total
            vecadd.release()

        run_together(lend)
        vecadd.add(x, x, target, stream=captured)
    driver.launch(graph[0], captured)
    assert_same_values(target.numpy(), 2 * A)
    double.stream_destroy(captured)


@pytest.mark.parametrize("nonblocking", [False, True], ids=["blocking", "non-blocking"])
@pytest.mark.parametrize("seed", range(5))
def test_memory_lent_to_a_bare_handle_goes_back_after_its_work(double, driver, seed, nonblocking):
    """That of a non-blocking stream, after whose work nothing is ordered without its handle, when the GPU is waited
    for."""
    double.reset(seed)
    live = double.live()
    x, target, stream = numbers(driver), ForeignArray(driver, np.zeros_like(A)), double.stream_create(0, nonblocking)
    y = Borrowed(x, stream)
    driver.copy(stream, target.pointer, y.pointer, A.nbytes)
    double.stream_destroy(stream)
    del x, y
    vecadd.memory_stats()
    assert _core.memory_counts()["device_blocks"] == 0
    assert double.live().device_blocks == live.device_blocks + nonblocking
    vecadd.release()
    assert double.live().device_blocks == live.device_blocks
    assert_same_values(target.numpy(), A)


def test_a_capture_by_a_borrower_on_a_bare_handle_keeps_the_memory(double, driver):
    live, x, stream = double.live(), numbers(driver), double.stream_create(0, True)
    target = ForeignArray(driver, np.zeros_like(A))
    with driver.capture(stream) as graph:
        y = Borrowed(x, stream)
        driver.copy(stream, target.pointer, y.pointer, A.nbytes)
        del x, y
        vecadd.memory_stats()
    driver.launch(graph[0], stream)
    double.stream_destroy(stream)
    assert double.live().device_blocks == live.device_blocks + 1
    vecadd.release()
    assert_same_values(target.numpy(), A)


def torch_with(handle, own):
    """One whose current stream it is. The id of one that is not torch's own is its handle."""
    core = SimpleNamespace(
        _cuda_getCurrentRawStream=lambda device: handle,
        _cuda_getCurrentStream=lambda device: (3 if own else handle, device, 1),
    )
    return SimpleNamespace(_C=core, cuda=SimpleNamespace(is_initialized=lambda: True))


def jax_with(handle, own):
    """One whose producers order one of four streams, each in its turn."""
    turns = itertools.cycle([11, 12, handle if own else 13, 14])
    gpu = SimpleNamespace(
        local_hardware_id=0, client=SimpleNamespace(), get_stream_for_external_ready_events=lambda: next(turns)
    )
    bridge = SimpleNamespace(backends_are_initialized=lambda: True)
    return SimpleNamespace(_src=SimpleNamespace(xla_bridge=bridge), local_devices=lambda backend: [gpu])


@pytest.mark.parametrize("own", [True, False], ids=["its own", "another's"])
@pytest.mark.parametrize(("name", "library"), [("torch", torch_with), ("jax", jax_with)], ids=["torch", "jax"])
def test_memory_lent_to_a_library_whose_streams_stay_goes_back_at_once(double, driver, monkeypatch, name, library, own):
    live, stream = double.live(), driver.stream()
    monkeypatch.setitem(sys.modules, name, library(stream, own))
    x, target = numbers(driver), ForeignArray(driver, np.zeros_like(A))
    y = Borrowed(x, stream)
    driver.copy(stream, target.pointer, y.pointer, A.nbytes)
    del x, y
    vecadd.memory_stats()
    assert double.live().device_blocks == live.device_blocks + (not own)
    assert_same_values(target.numpy(), A)


@pytest.mark.parametrize("nonblocking", [False, True], ids=["blocking", "non-blocking"])
@pytest.mark.parametrize("seed", range(5))
def test_a_sum_on_a_bare_handle_is_used_without_it(double, driver, nonblocking, seed):
    double.reset(seed)
    stream, late, source = double.stream_create(0, nonblocking), *(ForeignArray(driver, a) for a in (0 * A, A))
    target = ForeignArray(driver, np.zeros_like(A))
    driver.copy_late(stream, late.pointer, source.pointer, A.nbytes)
    total = vecadd.add(late, 1, stream=stream)
    driver.copy(stream, target.pointer, total.__cuda_array_interface__["data"][0], A.nbytes)
    double.stream_destroy(stream)
    assert_same_values(vecadd.add(total, total).numpy(), 2 * (A + 1))
    del total
    assert_same_values(target.numpy(), A + 1)


def test_a_sum_on_a_bare_handle_of_a_blocking_stream_needs_no_legacy_stream(double, driver):
    """Which cannot be used while another blocking stream captures."""
    captured, stream = (double.stream_create(0, False) for _ in range(2))
    x, target = ForeignArray(driver, A), ForeignArray(driver, np.zeros_like(A))
    vecadd.add(x, x, target, stream=captured)
    with driver.capture(captured):
        total = vecadd.add(x, 1, stream=stream)
        vecadd.add(x, x, target, stream=captured)
    assert_same_values(total.numpy(), A + 1)
    for handle in (captured, stream):
        double.stream_destroy(handle)


def test_parked_memory_is_bounded(child):
    """By an eighth of the device's memory, and by what other arrays need."""
    child("""
import numpy as np, vecadd, foreign
from double import control
control.capacity(16 << 20)
driver, kept = foreign.open_driver(True), []
a = foreign.ForeignArray(driver, np.ones(1 << 20, np.int8))
stream = driver.stream()
most = 0
for k in range(40):
    total = vecadd.add(a, k, stream=stream)
    del total
    most = max(most, control.live().device_blocks)
assert 2 <= most <= 4, most
for k in range(3):
    vecadd.add(a, k, stream=stream)
kept = [vecadd.to_device(np.ones(1 << 20, np.int8)) for _ in range(15)]
assert all((x.numpy() == 1).all() for x in kept)
assert control.faults() == 0
""")


def test_a_plan_on_a_bare_handle_closes_after_its_stream_has_gone(double, driver):
    """It has to wait for the GPU where its operands' library frees them at once."""
    x, out, stream = DLPackArray(ForeignArray(driver, A)), ForeignArray(driver, 0 * A), double.stream_create(0, True)
    plan = vecadd.plan(x, x, out, stream=stream)
    plan()
    double.stream_destroy(stream)
    kept = x.given - x.deleted
    assert kept > 0
    del plan
    assert x.deleted == x.given
    assert_same_values(out.numpy(), 2 * A)


def test_a_plans_stream_is_kept_until_its_operands_are(cupy, driver):
    x, out = DLPackArray(ForeignArray(driver, A)), ForeignArray(driver, 0 * A)
    with cupy.cuda.Stream(nonblocking=True) as stream:
        plan = vecadd.plan(x, x, out, stream=stream.ptr)
        del stream
    plan()
    del plan
    driver.synchronize(0)
    settle()
    assert x.deleted == x.given
    assert_same_values(out.numpy(), 2 * A)


@pytest.mark.parametrize("empty", [False, True])
def test_a_borrowers_stream_of_another_gpu_is_refused_as_by_add(second_device, double, driver, empty):
    x, stream = vecadd.to_device(A[:0] if empty else A), driver.stream(1)
    refusals = []
    for call in (lambda: vecadd.add(x, x, stream=stream), lambda: x.__dlpack__(stream=stream)):
        with pytest.raises(ValueError, match="the stream is on cuda:1 and the arrays are on cuda:0") as refused:
            call()
        refusals.append(str(refused.value))
    assert refusals[0] == refusals[1]
    assert_same_values(x.numpy(), A[:0] if empty else A)
