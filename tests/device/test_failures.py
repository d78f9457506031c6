"""What fails inside CUDA: each call made by each route fails once, early or for ever, and the next call works."""

import gc
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from arrays import assert_same_values
from cuda_failures import CUDA_CALLS, INVALID_VALUE, MEMORY_ALLOCATION, UNKNOWN
from foreign import Lent
from orders import orders

import vecadd
from vecadd import _core

N = 35_001  # two chunks of a transfer; those of longer ones fail in tests/c/test_transfer.c


class Work:
    """The operands of every route, made before anything fails; each route gives its sum as a NumPy array."""

    def __init__(self):
        self.host = np.arange(N, dtype=np.float32)
        self.want = self.host * 2
        self.pinned = vecadd.empty_pinned(N, np.float32)
        self.pinned[:] = self.host
        self.pinned_out = vecadd.empty_pinned(N, np.float32)
        self.device = vecadd.to_device(self.host)
        self.out = vecadd.to_device(self.host)
        self.stream = vecadd.to_device(self.host)
        self.integers = vecadd.to_device(self.host.astype(np.int32))
        self.zeros = vecadd.to_device(np.zeros_like(self.host))
        self.twice = vecadd.to_device(np.repeat(self.host, 2))
        self.long = vecadd.to_device(np.zeros(N + 1, np.float32))

    def window(self, start):
        """N elements of the long array from element `start` on."""
        interface = self.long.__cuda_array_interface__
        pointer = interface["data"][0] + start * self.host.itemsize
        return SimpleNamespace(__cuda_array_interface__={**interface, "shape": (N,), "data": (pointer, False)})


def of_two_dtypes_through_a_temporary(work):
    vecadd.add(work.integers, 0, work.window(0))
    vecadd.add(work.window(0), work.integers, work.window(1))
    return vecadd.add(work.window(1), work.zeros).numpy()


def rung(name):
    return lambda work: vecadd.ladder.run(name, work.device, work.device, adds=3).numpy()


# Routes whose calls fail one after the other in one test each.
SINGLE = {
    "new_result": lambda work: vecadd.add(work.device, work.device).numpy(),
    "into_out": lambda work: vecadd.add(work.device, work.device, work.out).numpy(),
    "of_two_dtypes": lambda work: vecadd.add(work.device, work.integers, work.out).numpy(),
    "of_two_dtypes_through_a_temporary": of_two_dtypes_through_a_temporary,
    "on_another_stream": lambda work: vecadd.add(work.device, work.device, stream=2).numpy(),
    "planned": lambda work: vecadd.plan(work.device, work.device, work.out)().numpy(),
    "many": lambda work: vecadd.add_many([work.device] * 2, [work.device] * 2, stream=2)[1].numpy(),
    "through_the_gpu": lambda work: vecadd.add(work.host, work.host, device="cuda"),
    "through_the_gpu_pinned": lambda work: vecadd.add(
        work.pinned, work.pinned, vecadd.empty_pinned(N, np.float32), device="cuda"
    ).copy(),
    "up_and_down": lambda work: vecadd.to_device(work.want).numpy(),
    "views of one dtype": lambda work: vecadd.add(work.twice[::2], work.twice[1::2]).numpy(),
    "views of two dtypes": lambda work: vecadd.add(work.twice[::2], work.integers, work.out).numpy(),
    "a view as out": lambda work: vecadd.add(work.device, work.device, work.long[1:]).copy().numpy(),
    "pairs and a column": lambda work: vecadd.add(
        vecadd.add(work.twice.reshape(-1, 2), work.zeros.reshape(-1, 1))[:, 0], work.device
    ).numpy(),
    "in place": lambda work: work.device.copy().__iadd__(work.device).numpy(),
    "a number": lambda work: vecadd.add(vecadd.add(work.device, 0.0), work.device).numpy(),
    "lists planned": lambda work: vecadd.plan([work.device] * 2, [work.device] * 2, [work.out, work.stream])()[
        1
    ].numpy(),
    "lists on the host's way": lambda work: vecadd.add_many([work.device], [work.integers])[0].numpy().astype("f4"),
    "staged for the GPU": lambda work: vecadd.add(work.host[::-1], work.host[::-1], device="cuda")[::-1],
    "into pinned memory": lambda work: (work.device + work.device).numpy(out=work.pinned_out).copy(),
    "pickled": lambda work: pickle.loads(pickle.dumps(work.device + work.device)).numpy(),
}
if _core.LAB_BUILD:
    SINGLE |= {"in_pieces": rung("pdl"), "as_a_graph": rung("graph_pdl_trigger"), "batched": rung("batched")}


# Routes that keep what was lent until a later call, or release, finds the GPU done with it.
LENT = {
    "lent by DLPack": lambda work: vecadd.add(Lent(work.device), Lent(work.device)).numpy(),
    "lent by DLPack into out": lambda work: vecadd.add(Lent(work.device), work.device, Lent(work.out)).array.numpy(),
}


def transfer(rung, run):
    """The route through a transfer rung: its usual way, or, to reach more calls, with a timeline and a sum that is
    cleared first. Of so few elements hybrid gives the GPU none: tests/c/test_hybrid.c fails its calls."""
    params = {}
    if run is _core.timeline and "kernel" in rung["params"] and rung["name"] != "zero_copy":
        params["kernel"] = 6

    def route(work):
        _core.poison(work.pinned_out)
        run(rung["name"], work.pinned, work.pinned, work.pinned_out, params=params)
        return work.pinned_out

    return route


TRANSFERS = {
    f"{run.__name__} {rung['name']}": transfer(rung, run)
    for rung in (_core.rungs() if _core.LAB_BUILD else ())
    if rung["kind"] == "transfer"
    for run in (_core.run_rung, _core.timeline)
}


def allocated(double):
    return _core.memory_counts(), double.live()


def is_as_before(double, before):
    """Whether no more is allocated than before, garbage aside; collecting it takes longer than most tests."""
    if allocated(double) != before:
        gc.collect()
    return allocated(double) == before


def attempt(route, work):
    """The exception of one attempt; without one the sum must be right."""
    try:
        assert_same_values(route(work), work.want)
    except (RuntimeError, MemoryError, ValueError) as error:
        return error.with_traceback(None)  # whose frames would keep a route's arrays
    return None


@pytest.fixture
def work(double, device):
    """Emptied at the end, because pytest keeps it until after the device's check of what is left."""
    made = Work()
    yield made
    vars(made).clear()


def calls_of(route, double, work):
    """The CUDA calls that the route makes when nothing fails, and how often it makes each."""
    double.reset(0)
    assert attempt(route, work) is None
    return {call: double.calls(call) for call in CUDA_CALLS if double.calls(call)}


NAMED = SINGLE | TRANSFERS


ALL = NAMED | LENT


@pytest.mark.parametrize("route", ALL.values(), ids=ALL)
def test_no_failure_is_left_for_the_next_library_to_find(route, double, work):
    """Nor one of a wait or a release, whose results have no other reader."""
    attempt(route, work)
    double.reset(0)
    attempt(route, work)
    made = {call: double.calls(call) for call in CUDA_CALLS if double.calls(call)}
    assert len(made) >= 2
    double.take_errors()
    for call, times in made.items():
        for nth in {1, times}:
            double.reset(0)
            double.report_earlier(UNKNOWN)
            double.fail(call, nth, UNKNOWN, False)
            attempt(route, work)
            assert double.take_errors() == 0, (call, nth)
            vecadd.release()
            assert double.take_errors() == 0, (call, nth)
    double.reset(0)
    assert attempt(route, work) is None
    vecadd.release()


@pytest.mark.parametrize("route", ALL.values(), ids=ALL)
def test_every_allocation_in_c_may_find_no_memory_once(route, double, work):
    assert attempt(route, work) is None
    vecadd.release()
    double.reset(0)
    attempt(route, work)
    times = double.allocations()
    vecadd.release()
    before = _core.memory_counts()
    for nth in range(1, times + 1):
        double.fail_allocation(nth)
        assert isinstance(attempt(route, work), MemoryError | None)
        double.reset(0)
        assert attempt(route, work) is None
        vecadd.release()
        gc.collect()
        assert _core.memory_counts() == before


@pytest.mark.parametrize("route", TRANSFERS.values(), ids=TRANSFERS)
def test_a_transfer_rung_that_finds_no_memory_works_again_when_there_is_some(route, double, work):
    attempt(route, work)
    before = allocated(double)
    for call in ("cudaMalloc", "cudaMallocFromPoolAsync", "cudaMallocManaged", "cudaHostAlloc"):
        double.reset(0)
        double.fail(call, 1, MEMORY_ALLOCATION, True)
        error = attempt(route, work)
        assert isinstance(error, MemoryError) or double.calls(call) == 0
        double.reset(0)
        assert attempt(route, work) is None
        assert is_as_before(double, before)


@pytest.mark.parametrize("route", SINGLE.values(), ids=SINGLE)
@pytest.mark.parametrize("status", [INVALID_VALUE, MEMORY_ALLOCATION, UNKNOWN])
def test_calls_that_fail_for_ever_work_again_when_they_do(status, route, double, work):
    attempt(route, work)
    before = allocated(double)
    for call in calls_of(route, double, work):
        double.reset(0)
        double.fail(call, 1, status, True)
        attempt(route, work)
        double.reset(0)
        assert attempt(route, work) is None
        assert is_as_before(double, before)


def test_out_is_untouched_when_device_memory_is_short(double, work):
    before = work.out.numpy()
    double.fail("cudaMallocFromPoolAsync", 1, MEMORY_ALLOCATION, True)
    with pytest.raises(MemoryError, match=r"room|memory"):
        vecadd.to_device(work.host)
    double.reset(0)
    assert_same_values(work.out.numpy(), before)


def test_device_memory_that_is_short_once_is_asked_for_again(double, work):
    double.fail("cudaMallocFromPoolAsync", 1, MEMORY_ALLOCATION, False)
    assert_same_values(vecadd.add(work.device, work.device).numpy(), work.want)


def test_host_out_is_untouched_when_a_transfer_finds_no_memory(double, work):
    out = np.full(N, -1, np.float32)
    double.fail("cudaMallocFromPoolAsync", 1, MEMORY_ALLOCATION, True)
    with pytest.raises(MemoryError):
        vecadd.add(work.host, work.host, out, device="cuda")
    assert (out == -1).all()


# Two CUDA calls fail, in two calls of ours one after the other or in one: nothing is lost, and the next call works.


def pairs(failures):
    """Each failure first in one pair, with another one that is nearer or farther from pair to pair."""
    return [(each, failures[(7 * at + 3) % len(failures)]) for at, each in enumerate(failures)]


def fail(double, *failures):
    assert (double.faults(), double.take_errors()) == (0, 0)
    double.reset(0)
    for call, nth in failures:
        double.fail(call, nth, UNKNOWN, False)


def each_pair_failing(route, double, work):
    """Each pair of the route's calls fails, in one attempt and in two; it is looked at after an attempt that works."""
    made, failed = calls_of(route, double, work), 0
    assert len(made) >= 3
    for pair in pairs([(call, nth) for call, times in made.items() for nth in range(1, times + 1)]):
        for attempts in ([pair], [pair[:1], pair[1:]]):
            for failures in attempts:
                fail(double, *failures)
                error = attempt(route, work)
                assert error is None or "999" in str(error), failures
                failed += isinstance(error, RuntimeError)
            fail(double)
            assert attempt(route, work) is None, attempts
            yield pair, attempts
    assert failed


@pytest.mark.parametrize("route", NAMED.values(), ids=NAMED)
def test_two_calls_of_a_route_may_fail(route, double, work):
    assert attempt(route, work) is None
    before = allocated(double)
    for pair in each_pair_failing(route, double, work):
        assert is_as_before(double, before), pair


@pytest.mark.parametrize("route", LENT.values(), ids=LENT)
def test_what_was_lent_is_let_go_whichever_two_calls_fail(route, double, work):
    assert attempt(route, work) is None
    vecadd.release()
    assert calls_of(route, double, work).keys() >= {"cudaEventRecord", "cudaEventQuery"}
    for again in (False, True):  # the first time makes the events that are kept for later
        before = allocated(double)
        for pair in each_pair_failing(route, double, work):
            vecadd.release()
            assert _core.memory_counts() == before[0], pair
        assert not again or is_as_before(double, before)


@pytest.mark.parametrize("seed", orders(8, 8))
def test_nothing_of_a_list_is_queued_any_more_when_its_second_launch_has_failed(seed, double, driver, foreign):
    """Its owner may write to out at once, on a stream that nothing of ours has been ordered with."""
    n = 3 * 1024  # elements; the pairs take two launches
    own = driver.stream()
    x, out, later = foreign(np.ones(n, np.int32)), foreign(np.zeros(n, np.int32)), foreign(np.full(n, 9, np.int32))
    xs, outs = ([array.window(at, 3) for at in range(0, n, 3)] for array in (x, out))
    double.reset(seed)
    double.fail("cudaLaunchKernel", 2, UNKNOWN, False)
    with pytest.raises(RuntimeError, match="999"):
        vecadd.add_many(xs, xs, outs, stream=driver.stream())
    driver.copy_late(own, out.pointer, later.pointer, out.nbytes)
    assert (out.numpy() == 9).all()
