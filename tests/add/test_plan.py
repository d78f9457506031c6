"""vecadd.plan: an addition that is checked once and made again by each call; what add refuses, it refuses."""

import gc
import itertools
import warnings
import weakref

import numpy as np
import pytest
from arrays import DTYPES, assert_same_values

import vecadd
from vecadd import _core

N = 1000
UNKNOWN, MEMORY_ALLOCATION = 999, 2


def numbers(seed, n=N, dtype=np.int32):
    return np.random.default_rng(seed).integers(-100, 100, n).astype(dtype)


@pytest.fixture
def operands(device):
    """a, b and out as DeviceArrays, and the sum's values. Emptied at the end, because pytest keeps it until after the
    device's check of what is left."""
    a, b = numbers(1), numbers(2)
    made = [vecadd.to_device(a), vecadd.to_device(b), vecadd.to_device(np.zeros_like(a)), a + b]
    yield made
    made.clear()


@pytest.mark.parametrize("n", [0, 1, 3, 17, 4099])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_and_length(dtype, n, device):
    a = numbers(1, n, dtype)
    x, out = vecadd.to_device(a), vecadd.to_device(np.zeros_like(a))
    assert_same_values(vecadd.plan(x, x, out)().numpy(), np.add(a, a))


def test_the_route_is_told(operands):
    a, b, out, _ = operands
    host = numbers(1)
    assert vecadd.plan(a, b, out).route == "device"
    assert vecadd.plan(host, host, np.empty_like(host)).route == "host"
    assert vecadd.plan(host, host[:1], np.empty_like(host)).route == "numpy"


def test_repr_says_what_is_planned(operands):
    a, b, out, _ = operands
    assert repr(vecadd.plan(a, b, out)) == f"<vecadd.Plan route=device shape=({N},) dtype=int32>"


def test_device_plans_are_launched_as_graphs(operands, double):
    a, b, out, _ = operands
    plan = vecadd.plan(a, b, out)
    double.reset(0)
    plan()
    kernels = double.calls("cudaLaunchKernel") + double.calls("cudaLaunchKernelExC")
    assert (double.calls("cudaGraphLaunch"), kernels) == (1, 0)


def test_out_that_overlaps_in_part_is_planned_as_it_is_added(driver, foreign):
    a = numbers(1)
    memory, want = foreign(a), a.copy()
    want[10:510] = a[0:500] + a[100:600]
    vecadd.plan(memory.window(0, 500), memory.window(100, 500), memory.window(10, 500))()
    assert_same_values(memory.numpy(), want)


@pytest.mark.parametrize("first", [True, False], ids=["a", "b"])
def test_out_that_overlaps_one_operand_in_part_is_planned_as_it_is_added(driver, foreign, first):
    """The kernel's threads run in any order: a sum that reads what it writes elsewhere goes by a temporary."""
    a, b = numbers(1, 100_000), numbers(2, 50_000)
    memory, other = foreign(a), foreign(b)
    window, out = memory.window(0, 50_000), memory.window(1, 50_000)
    plan = vecadd.plan(window, other, out) if first else vecadd.plan(other, window, out)
    plan()
    want = a.copy()
    want[1:50_001] = a[:50_000] + b
    assert_same_values(memory.numpy(), want)


def test_a_plan_on_a_given_stream_comes_after_its_operands_producers(driver, foreign):
    a, b = numbers(1), numbers(2)
    late, out, source = foreign(np.zeros_like(a), stream=driver.stream()), foreign(np.zeros_like(a)), foreign(a)
    plan = vecadd.plan(late, foreign(b), out, stream=driver.stream())
    driver.copy_late(late.__cuda_array_interface__["stream"], late.pointer, source.pointer, a.nbytes)
    plan()
    assert_same_values(out.numpy(), a + b)


class OwnedStream:
    """As CuPy's: who drops the object destroys the stream."""

    def __init__(self, handle):
        self._handle = handle

    def __cuda_stream__(self):
        return 0, self._handle


@pytest.mark.parametrize("lists", [False, True], ids=["arrays", "lists"])
def test_a_plan_keeps_the_stream_that_it_queues_on(driver, foreign, lists):
    a, b = numbers(1), numbers(2)
    out, stream = foreign(np.zeros_like(a)), OwnedStream(driver.stream())
    operands = (foreign(a), foreign(b), out)
    plan = vecadd.plan(*(([each] for each in operands) if lists else operands), stream=stream)
    gone = weakref.ref(stream)
    del stream
    gc.collect()
    assert gone() is not None
    plan()
    assert_same_values(out.numpy(), a + b)
    del plan
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("lists", [False, True], ids=["arrays", "lists"])
def test_a_plan_that_its_stream_keeps_goes_with_it(driver, foreign, lists):
    operands, stream = [foreign(numbers(seed)) for seed in range(3)], OwnedStream(driver.stream())
    stream.plan = vecadd.plan(*(([each] for each in operands) if lists else operands), stream=stream)
    gone = weakref.ref(stream)
    del stream
    gc.collect()
    assert gone() is None


def test_owner_may_overwrite_an_operand_at_once(driver, foreign):
    a, b, stream = numbers(1), numbers(2), driver.stream()
    x, later, out = foreign(a, stream=stream), foreign(numbers(3)), foreign(np.zeros_like(a))
    plan = vecadd.plan(x, foreign(b), out, stream=driver.stream())
    plan()
    driver.copy_late(stream, x.pointer, later.pointer, a.nbytes)
    assert_same_values(out.numpy(), a + b)


# Host operands.


@pytest.mark.parametrize("n", [0, 1, 17, 4099, 200_000])
def test_numpy_arrays_are_added_on_the_host(n):
    a, b = numbers(1, n, np.float32), numbers(2, n, np.float32)
    out = np.empty_like(a)
    plan = vecadd.plan(a, b, out)
    assert plan() is out
    assert_same_values(out, a + b)
    a += 1
    assert_same_values(plan(), a + b)


def test_what_is_numpys_to_add_is_left_to_it():
    a, out = np.arange(12.0).reshape(3, 4), np.empty((4, 3))
    assert_same_values(vecadd.plan(a.T, 1, out)(), a.T + 1)


def test_warnings_come_with_each_call():
    a = np.full(10, np.finfo(np.float32).max)
    plan = vecadd.plan(a, a, np.empty_like(a))
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="overflow"):
            plan()
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow encountered in add"):
        plan()


def read_only(a):
    a.flags.writeable = False


@pytest.mark.parametrize(
    "change", [read_only, lambda a: a.resize(10 * N, refcheck=False)], ids=["read-only", "resized"]
)
def test_a_numpy_array_that_changed_since_is_refused(change):
    a, out = numbers(1), np.zeros(N, np.int32)
    plan = vecadd.plan(a, a, out)
    change(out)
    before = out.copy()
    with pytest.raises(ValueError, match="make a new plan"):
        plan()
    assert_same_values(out, before)


# What is refused.


def test_numpy_arrays_that_all_changed_to_one_dtype_are_refused():
    x = np.ones(N, np.float32)
    plans = vecadd.plan(x, x, x), vecadd.plan([x], [x], [x])
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # NumPy's from 2.5 on
        x.dtype = np.int32
    with pytest.raises(ValueError, match="changed its dtype"):
        plans[0]()
    assert (x.view(np.float32) == 1).all()
    plans[1]()  # which looks at its arrays anew
    assert (x == 2 * np.ones(N, np.float32).view(np.int32)).all()


def test_one_numpy_array_in_every_place_that_became_shorter_is_refused():
    """Its memory may begin where it did."""
    x = np.ones(N)
    plan = vecadd.plan(x, x, x)
    x.resize(N // 2, refcheck=False)
    with pytest.raises(ValueError, match="has been resized"):
        plan()
    assert (x == 1).all()


def test_what_add_refuses_a_plan_refuses_and_out_is_untouched(operands, foreign):
    a, b, out, _ = operands
    before = out.numpy()
    short, other = vecadd.to_device(numbers(1, 10)), vecadd.to_device(numbers(1, N, np.float32))
    sealed = foreign(numbers(1), data=(foreign(numbers(2)).pointer, True))
    for bad, exception in (
        ((a, short, out), ValueError),
        ((a, other, out), TypeError),
        ((a, numbers(1), out), TypeError),
        ((a, b, numbers(1)), TypeError),
        ((a, b, sealed), ValueError),
        ((a, b, out, "stream"), TypeError),
    ):
        with pytest.raises(exception):
            vecadd.plan(*bad)
    assert_same_values(out.numpy(), before)


class Moves:
    """An array that is elsewhere at each look, as a view is whose values are computed anew."""

    def __init__(self, *places):
        self.places = itertools.cycle(places)

    @property
    def __cuda_array_interface__(self):
        return next(self.places).__cuda_array_interface__


@pytest.mark.parametrize("moving", range(3), ids=["a", "b", "out"])
def test_an_operand_that_moves_cannot_be_planned(foreign, moving):
    arrays = [foreign(numbers(seed)) for seed in range(5)]
    given = list(arrays[:3])
    given[moving] = Moves(*arrays[3:])
    with pytest.raises(ValueError, match="an operand is a view whose values are computed anew for each addition"):
        vecadd.plan(*given)
    for seed, array in enumerate(arrays):
        assert_same_values(array.numpy(), numbers(seed))


def test_a_call_takes_no_arguments(operands):
    a, b, out, _ = operands
    plan = vecadd.plan(a, b, out)
    for call in (lambda: plan(1), lambda: plan(out=out)):
        with pytest.raises(TypeError, match="takes no arguments"):
            call()
    nothing: dict[str, object] = {}
    assert plan(**nothing) is out


def test_plans_are_made_by_plan_alone():
    with pytest.raises(TypeError, match="cannot create"):
        _core.Plan()


# What it keeps alive.


def test_a_plan_in_a_cycle_is_collected():
    class Holder(np.ndarray):
        pass

    a = numbers(1).view(Holder)
    a.plan = vecadd.plan(a, a, a)
    gone = weakref.ref(a)
    del a
    gc.collect()
    assert gone() is None


# Threads, captures, forks.


FORKED = """
import os
import numpy as np, vecadd
a = np.arange(10, dtype='i4')
x = vecadd.to_device(a)
plan, host = vecadd.plan(x, x, x), vecadd.plan(a, a, np.empty_like(a))
pid = os.fork()
if pid == 0:
    try:
        plan()
    except RuntimeError as error:
        assert "spawn" in str(error), error
        assert (host() == a + a).all()
        del plan
        os._exit(0)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert (plan().numpy() == a + a).all()
"""


def test_in_a_fork_device_plans_name_spawn_and_host_plans_add(device, child):
    child(FORKED)


# What fails inside CUDA.


LOST = """
import numpy as np, pytest, vecadd
from double import control
a = np.arange(10, dtype='i4')
x = vecadd.to_device(a)
plan, host = vecadd.plan(x, x, x), vecadd.plan(a, a, np.empty_like(a))
control.fail("cudaGraphLaunch", 1, 700, False)
for _ in range(2):
    with pytest.raises(vecadd.DeviceLostError, match="no device call"):
        plan()
    assert (host() == a + a).all()
del plan, x
"""


def test_after_an_error_that_stays_only_host_plans_add(double, child):
    child(LOST)


def test_a_plan_finds_no_memory(operands, double):
    a, b, out, want = operands
    double.fail("cudaGraphInstantiate", 1, MEMORY_ALLOCATION, False)
    with pytest.raises(MemoryError):
        vecadd.plan(a, b, out)
    assert_same_values(vecadd.plan(a, b, out)().numpy(), want)


def test_what_cannot_be_planned_says_what_to_do():
    a, out = np.ones(5), np.zeros(5)
    for without_out in ((a, a), (a, a, None)):
        with pytest.raises(TypeError, match=r"plan\(\) needs out, .* make it as numpy\.empty_like"):
            vecadd.plan(*without_out)
    with pytest.raises(TypeError, match=r"not where: call add\(a, b, out, where=\.\.\.\) each time"):
        vecadd.plan(a, a, out, where=True)
    with pytest.raises(TypeError, match=r"not device: .* call add\(a, b, out, device=\.\.\.\) each time"):
        vecadd.plan(a, a, out, device="cuda")
