"""Sums captured into another library's graph: nothing in them ends the capture, and replays add what is there then.

A wait, an allocation or a query of the thread that captures ends the capture; of any thread, where it is of the whole
process (CUDA's global mode, which PyTorch uses). What PyTorch and CuPy capture is in test_torch.py and test_cupy.py.
"""

import gc
import importlib
from functools import partial

import numpy as np
import pytest
from arrays import assert_same_values
from conftest import ON_DOUBLE, memory_grown
from foreign import DLPackArray, ForeignArray, ForeignStream, Lent, open_driver
from threads import run_together

import vecadd
from vecadd import _core

N = 1000
A, B = np.arange(N, dtype=np.int32), np.full(N, 7, np.int32)


@pytest.fixture
def stream(driver):
    yield driver.stream()
    driver.synchronize(0)
    _core.release()


@pytest.fixture
def replayed(driver, foreign, stream):
    """replayed(make, call, sum_of): captures call(x, y, out), whose operands are of that kind, and replays it."""

    def replay(make, call, sum_of):
        x, y, out = make(A), foreign(B, stream=stream), foreign(np.zeros_like(A), stream=stream)
        call(x, y, out)  # before a capture, as PyTorch asks of everything: modules are loaded then
        with driver.capture(stream) as graph:
            call(x, y, out)
        pointer = x.array.pointer if isinstance(x, DLPackArray) else x.__cuda_array_interface__["data"][0]
        changed = foreign(A * 3)
        for left in (A, A * 3):
            driver.launch(graph[0], stream)
            assert_same_values(out.numpy(), sum_of(left))
            driver.copy(stream, pointer, changed.pointer, A.nbytes)

    return replay


@pytest.fixture(params=["interface", "DeviceArray", "DLPack", "older DLPack"])
def make(request, foreign, driver, stream):
    def device_array(x):
        made = vecadd.add(foreign(x), 0, stream=ForeignStream(stream))
        driver.synchronize(0)
        return made

    return {
        "interface": lambda x: foreign(x, stream=stream),
        "DeviceArray": device_array,
        "DLPack": lambda x: DLPackArray(foreign(x)),
        "older DLPack": lambda x: DLPackArray(foreign(x), versions=(0,)),
    }[request.param]


def in_place(x, y, out):
    vecadd.add(x, y, out)
    vecadd.add(out, out, out)


def new_sums(x, y, out):
    total = vecadd.add(x, y, stream=out.__cuda_array_interface__["stream"])
    vecadd.add(total, vecadd.add(total, y), out)


def strided(x, y, out):
    vecadd.add(x, 2, out)
    vecadd.add(out, y.window(0, 1), out)


def overlapping(x, y, out):
    vecadd.add(x, y, out)
    vecadd.add(out.window(0, N - 1), out.window(1, N - 1), out.window(0, N - 1))


def lists(x, y, out):
    vecadd.add_many([x], [y], [out])


def lists_led_by_a_later_pair(x, y, out):
    vecadd.add_many([x, out.window(0, 0)], [x, y.window(0, 0)], [out, out.window(0, 0)])


def new_lists(x, y, out):
    totals = vecadd.add_many([x, y], [y, y])
    vecadd.add(*totals, out)


def shifted(total):
    return np.append(total[:-1] + total[1:], total[-1])


many = pytest.mark.parametrize("many", [False, True], ids=["add", "add_many"])


def added(many, x, y, out=None, **keywords):
    return vecadd.add_many([x], [y], out and [out], **keywords)[0] if many else vecadd.add(x, y, out, **keywords)


CALLS = [
    (lambda x, y, out: vecadd.add(x, y, out), lambda a: a + B),
    (in_place, lambda a: 2 * (a + B)),
    (new_sums, lambda a: 2 * (a + B) + B),
    (strided, lambda a: a + 2 + B),
    (overlapping, lambda a: shifted(a + B)),
    (lists, lambda a: a + B),
    (lists_led_by_a_later_pair, lambda a: a + a),
    (new_lists, lambda a: a + 3 * B),
]


@pytest.mark.parametrize(("call", "sum_of"), CALLS, ids=["out", *(call.__name__ for call, _ in CALLS[1:])])
def test_replays_add_what_is_there_then(replayed, make, call, sum_of):
    replayed(make, call, sum_of)


def test_plans_are_captured(driver, foreign, stream):
    x, y, out = (foreign(a, stream=stream) for a in (A, B, np.zeros_like(A)))
    one, many = vecadd.plan(x, y, out), vecadd.plan([out, y], [out, y], [out, x])
    one()
    many()
    driver.write(x.pointer, A)
    with driver.capture(stream) as graph:
        one()
        many()
    driver.launch(graph[0], stream)
    assert_same_values(out.numpy(), 2 * (A + B))
    assert_same_values(x.numpy(), 2 * B)


def test_a_plan_made_in_a_capture_launches_its_kernel(double, driver, foreign, stream):
    x, y, out = (foreign(a, stream=stream) for a in (A, B, np.zeros_like(A)))
    before = double.calls("cudaGraphInstantiate")
    with driver.capture(stream) as graph:
        vecadd.plan(x, y, out)()
        assert double.calls("cudaGraphInstantiate") == before
    driver.launch(graph[0], stream)
    assert_same_values(out.numpy(), A + B)


def test_arrays_from_before_may_be_dropped_in_a_capture(driver, foreign, stream):
    """A capture frees only what was allocated in it: their memory goes back when it has ended."""
    x, y, out = (foreign(a, stream=stream) for a in (A, B, np.zeros_like(A)))
    before = _core.memory_counts()
    total = vecadd.add(x, y, stream=stream)
    stats = vecadd.memory_stats()
    with driver.capture(stream) as graph:
        vecadd.add(x, y, out)
        del total
        vecadd.add(out, y, out)
    driver.launch(graph[0], stream)
    assert_same_values(out.numpy(), A + 2 * B)
    assert _core.memory_counts() == before
    again = vecadd.add(x, y, stream=stream)
    assert vecadd.memory_stats() == stats
    assert_same_values(again.numpy(), A + B)


def test_producer_is_told_no_stream_in_a_capture(driver, foreign, stream):
    """It would have the capturing stream wait for its own, which is not captured. -1 is DLPack's word for no order."""
    x, y = DLPackArray(foreign(A)), foreign(B, stream=stream)
    vecadd.add(x, y, y)
    vecadd.add_many([x], [y], [y])
    x.asked.clear()
    with driver.capture(stream):
        vecadd.add(x, y, y)
        vecadd.add_many([x], [y], [y])
    assert x.asked
    assert {keywords["stream"] for keywords in x.asked} == {-1}


@many
def test_an_array_made_in_a_capture_is_read_by_dlpack_alone(driver, foreign, stream, many):
    """None is DLPack's word for the legacy default stream, which cannot wait for a stream that captures."""
    y, out = (foreign(a, stream=stream) for a in (B, np.zeros_like(A)))
    vecadd.add(Lent(vecadd.to_device(A)), y, out)
    driver.synchronize(0)
    with driver.capture(stream) as graph:
        inside = vecadd.add(y, 0)
        added(many, Lent(inside), y, out)
        del inside
    driver.launch(graph[0], stream)
    assert_same_values(out.numpy(), 2 * B)


@many
def test_streams_outside_of_a_capture_are_left_out(driver, foreign, stream, many):
    """An array whose own stream is another one is to be ready; a wait for that stream would end the capture."""
    x, y, out = vecadd.to_device(A), foreign(B, stream=driver.stream()), foreign(np.zeros_like(A), stream=stream)
    with driver.capture(stream) as graph:
        added(many, x, y, out, stream=stream)
    driver.launch(graph[0], stream)
    assert_same_values(out.numpy(), A + B)


@many
def test_a_stream_that_the_capture_leads_to_becomes_part_of_it(driver, foreign, stream, many):
    """A sum on another stream than its operands', which capture, comes after what is captured there, and before."""
    run_on = driver.stream()
    x, y, out = (foreign(a, stream=stream) for a in (A, B, np.zeros_like(A)))
    outside = foreign(B, stream=driver.stream())
    with driver.capture(stream) as graph:
        vecadd.add(x, y, out)
        added(many, out, outside, out, stream=run_on)
        vecadd.add(out, y, out)
    driver.launch(graph[0], stream)
    assert_same_values(out.numpy(), A + 3 * B)


@many
def test_a_new_sum_on_a_stream_that_the_capture_leads_to_belongs_to_the_graph(driver, foreign, stream, many):
    """Its memory goes to no other array while the graph may still write it."""
    run_on = driver.stream()
    x, y, out = (foreign(a, stream=stream) for a in (A, B, np.zeros_like(A)))
    with driver.capture(stream) as graph:
        total = added(many, x, y, stream=run_on)
        vecadd.add(total, y, out)
        del total
    vecadd.release()  # gives back what was kept until then too
    others = [vecadd.add(foreign(B), 0, stream=run_on) for _ in range(3)]
    driver.launch(graph[0], stream)
    assert_same_values(out.numpy(), A + 2 * B)
    for other in others:
        assert_same_values(other.numpy(), B)


def test_a_sum_by_way_of_a_temporary_follows_into_the_capture(driver, foreign, stream):
    x, before = foreign(A, stream=stream), _core.memory_counts()
    with driver.capture(stream) as graph:
        vecadd.add(x.window(0, N - 1), x.window(1, N - 1), x.window(0, N - 1), stream=driver.stream())
    driver.launch(graph[0], stream)
    assert_same_values(x.numpy(), shifted(A))
    assert memory_grown(before) == {}


@many
def test_a_plan_on_a_stream_that_the_capture_leads_to_becomes_part_of_it(driver, foreign, stream, many):
    x, y, out = (foreign(a, stream=stream) for a in (A, B, np.zeros_like(A)))
    lists = ([x], [y], [out]) if many else (x, y, out)
    plan = vecadd.plan(*lists, stream=driver.stream())
    plan()
    with driver.capture(stream) as graph:
        vecadd.add(x, y, x)
        plan()
        vecadd.add(out, y, out)
    driver.launch(graph[0], stream)
    assert_same_values(out.numpy(), A + 3 * B)


def test_an_array_is_exported_to_a_stream_that_captures(device, driver, foreign, stream):
    """For example PyTorch's from_dlpack within torch.cuda.graph."""
    x, y, out = vecadd.to_device(A), foreign(B, stream=stream), foreign(np.zeros_like(A), stream=stream)
    driver.synchronize(0)
    with driver.capture(stream) as graph:
        capsule = x.__dlpack__(stream=stream)
        vecadd.add(x, y, out)
    driver.launch(graph[0], stream)
    assert_same_values(out.numpy(), A + B)
    del capsule


@pytest.mark.parametrize("call", ["a new sum", "by way of a temporary"])
def test_no_room_in_a_capture_is_a_memory_error_and_ends_nothing(double, driver, foreign, stream, call):
    """Outside of one the stream is waited for, which gives back what was released on it, and the pool is trimmed."""
    x, y, out = (foreign(a, stream=stream) for a in (A, B, np.zeros_like(A)))
    work = {
        "a new sum": lambda: vecadd.add(x, y),
        "by way of a temporary": lambda: vecadd.add(x.window(0, N - 1), x.window(1, N - 1), x.window(0, N - 1)),
    }[call]
    with driver.capture(stream) as graph:
        vecadd.add(x, y, out)
        waits = [double.calls(name) for name in ("cudaStreamSynchronize", "cudaMemPoolTrimTo")]
        double.fail("cudaMallocFromPoolAsync", 1, 2)
        with pytest.raises(MemoryError):
            work()
        assert [double.calls(name) for name in ("cudaStreamSynchronize", "cudaMemPoolTrimTo")] == waits
        vecadd.add(out, y, out)
    driver.launch(graph[0], stream)
    assert_same_values(out.numpy(), A + 2 * B)


# Which streams a sum joins: one that captures leads, and streams that other threads use are never led into it.


@many
@pytest.mark.parametrize("captured_first", [False, True])
@pytest.mark.parametrize("home", [None, 2], ids=["legacy", "vecadd's own"])
def test_the_operand_whose_stream_captures_leads(driver, foreign, stream, many, captured_first, home):
    """Whatever the operands' order; an array from before is of the legacy default stream, or of vecadd's own."""
    x = vecadd.to_device(A) if home is None else vecadd.add(foreign(A), 0, stream=home)
    y0, out = foreign(B, stream=stream), foreign(np.zeros_like(A), stream=stream)
    driver.synchronize(0)
    with driver.capture(stream) as graph:
        y = vecadd.add(y0, 0)
        vecadd.add(added(many, *((y, x) if captured_first else (x, y))), 0, out)
        del y  # a graph frees its own memory
    driver.launch(graph[0], stream)
    assert_same_values(out.numpy(), A + B)


@many
def test_another_threads_sum_does_not_become_part_of_a_capture(driver, foreign, stream, many):
    x, apart = (vecadd.add(foreign(A), k, stream=2) for k in (0, 1))
    y0, out = foreign(B, stream=stream), foreign(np.zeros_like(A), stream=stream)
    theirs = foreign(np.zeros_like(A))
    driver.synchronize(0)
    with driver.capture(stream) as graph:
        vecadd.add(added(many, x, vecadd.add(y0, 0)), 0, out)
        run_together(lambda: vecadd.add(apart, apart, theirs))
    driver.synchronize(0)
    assert_same_values(theirs.numpy(), 2 * (A + 1))
    driver.launch(graph[0], stream)
    assert_same_values(out.numpy(), A + B)


def refused(call):
    with pytest.raises(RuntimeError, match="the legacy default stream cannot wait for a stream that captures"):
        call()


def test_a_shared_stream_is_not_led_into_a_capture(driver, foreign, stream):
    """By an array that goes to it, or by a plan from before whose stream it is: the capture goes on."""
    x = vecadd.to_device(A)
    y, out = (foreign(values, stream=stream) for values in (B, np.zeros_like(A)))
    plan = vecadd.plan(x, vecadd.add(y, 0, stream=ForeignStream(stream)), vecadd.to_device(A))
    with driver.capture(stream) as graph:
        inside = vecadd.add(y, 0)
        refused(inside.__dlpack__)
        refused(plan)
        vecadd.add(inside, x, out)
        del inside
    driver.launch(graph[0], stream)
    assert_same_values(out.numpy(), A + B)


# Beside a capture of the whole process, which a query, a wait or an allocation of any other thread would end.

LARGE = np.arange(100_000, dtype=np.int32)


def one_of_a_library(work):
    """DLPack's arrays are kept until an event has been reached, which later additions ask for."""
    for _ in range(3):
        vecadd.add(DLPackArray(work.x), DLPackArray(work.x), work.out)


def use_a_plan(work):
    vecadd.plan(work.x, work.x, work.out)()
    vecadd.plan([work.x], [work.x], [work.out])()


def copy_to_the_host(work):
    assert_same_values((work.ours + work.ours).numpy(), LARGE + LARGE)


BESIDE = {
    "of a library": one_of_a_library,
    "plans": use_a_plan,
    "numpy": copy_to_the_host,
    "add": lambda work: vecadd.add(work.ours, work.ours, stream=work.stream),
    "add_many": lambda work: vecadd.add_many([work.ours], [work.ours]),
    "to_device": lambda work: vecadd.to_device(LARGE),
    "views": lambda work: (work.ours[::2] + work.ours[1::2]).numpy(),
    "copy": lambda work: work.ours.copy(),
    "__dlpack__": lambda work: work.ours.__dlpack__(stream=work.stream),
    "empty_pinned": lambda work: vecadd.empty_pinned(100),
    "staged": lambda work: vecadd.add(LARGE, LARGE, device="cuda"),
    "pinned": lambda work: vecadd.add(*work.pinned, device="cuda"),
    "hybrid": lambda work: vecadd.add(work.huge, work.huge, work.huge, device="hybrid"),
    "release": lambda work: vecadd.release(),
    "memory_stats": lambda work: vecadd.memory_stats(),
    "a rung": lambda work: vecadd.ladder.run("grid_stride", work.ours, work.ours),
    "a transfer rung": lambda work: vecadd.ladder.run("streams2", *work.pinned),
    "a latency rung": lambda work: vecadd.ladder.run("graph", work.ours, work.ours, adds=10),
    "rates": lambda work: _core.probe("rates", 0, 1 << 16, 2),
    "the link": lambda work: _core.probe("link", 0, 1 << 16, 2),
    "launches": lambda work: _core.probe("launches", 0),
}


class Work:
    """What a call beside a capture needs; to make it would end the capture."""

    def __init__(self, driver, foreign):
        self.stream = driver.stream()
        self.x, self.out = foreign(LARGE), foreign(LARGE)
        self.ours = vecadd.to_device(LARGE)
        self.pinned = [vecadd.empty_pinned(LARGE.shape, "i4") for _ in range(3)]
        self.huge = vecadd.empty_pinned(9 << 20, "i4")
        for array in (*self.pinned, self.huge):
            array[...] = 1


def call_and_drop(call, work):
    """What it returns is dropped in the same thread."""
    call(work)


@pytest.mark.laboratory
def test_a_capture_goes_on_while_another_thread_calls(device, child):
    """In a process without JAX's threads, which other tests may have started: they end captures of the whole process.
    If it fails, its output ends with the name of the call."""
    child(
        "from device import test_captures\nfor name in test_captures.BESIDE:\n"
        "    print(name, flush=True)\n    test_captures.go_on_beside(name)"
    )


def go_on_beside(name):
    call, driver = BESIDE[name], open_driver(ON_DOUBLE)
    foreign, stream, before = partial(ForeignArray, driver), driver.stream(), _core.memory_counts()
    x, y, out = (foreign(a, stream=stream) for a in (A, B, np.zeros_like(A)))
    work = Work(driver, foreign)
    call(work)
    with driver.capture(stream, whole_process=True) as graph:
        vecadd.add(x, y, out)
        run_together(partial(call_and_drop, call, work))
        gc.collect()
        vecadd.add(out, y, out)
    driver.launch(graph[0], stream)
    assert_same_values(out.numpy(), A + 2 * B)
    del work
    vecadd.release()
    assert memory_grown(before) == {}
    driver.close()
    assert not ON_DOUBLE or importlib.import_module("double.control").faults() == 0


@pytest.mark.parametrize("first", ["device", "transfer"])
def test_a_device_may_be_used_for_the_first_time_beside_a_capture(device, child, first):
    child(f"""
import numpy as np, vecadd, foreign
from concurrent.futures import ThreadPoolExecutor
driver = foreign.open_driver({ON_DOUBLE})
a, stream = np.arange(1000.0), driver.stream()
with driver.capture(stream, whole_process=True), ThreadPoolExecutor(1) as pool:
    if {first!r} == "device":
        assert (pool.submit(lambda: vecadd.to_device(a).numpy()).result() == a).all()
    else:
        assert (pool.submit(lambda: vecadd.add(a, a, device="cuda")).result() == a + a).all()
driver.close()
""")
